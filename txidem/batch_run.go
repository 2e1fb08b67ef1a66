package txidem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// batchHandler does the work of the messages at some places of a batch.
type batchHandler func(ctx context.Context, tx pgx.Tx, fresh []int) error

// batch is the work on the messages of one call.
type batch struct {
	g          *Guard
	fn         batchHandler
	savepoints bool
	wait       any // the lock_timeout of the next claim

	results  []Result
	open     []bool        // which of them are still to be settled
	attempts []int         // how often the handler was called with each message
	ran      []bool        // which were claimed while the handler ran with any: a hidden COMMIT records them all
	event    DeliveryEvent // durations
}

// batch delivers messages by their ids.
func (g *Guard) batch(ctx context.Context, ids []string, o options, fn batchHandler) []Result {
	b := &batch{
		g: g, fn: fn, savepoints: o.savepoints, wait: g.wait,
		results: make([]Result, len(ids)), open: make([]bool, len(ids)),
		attempts: make([]int, len(ids)), ran: make([]bool, len(ids)),
	}
	defer b.tell(ctx, o.observer, time.Now())
	originals, copies := b.splitCopies(ctx, ids)
	if len(originals) > 0 {
		_ = b.work(ctx, originals, false) // is in the results
	}
	for at, original := range copies {
		b.results[at] = copied(b.results[original], ids[at])
	}
	return b.results
}

// splitCopies refuses the ids that cannot be stored, and tells the first message of each id from its copies.
func (b *batch) splitCopies(ctx context.Context, ids []string) (originals []int, copies map[int]int) {
	copies = map[int]int{}
	first := make(map[string]int, len(ids))
	for at, id := range ids {
		b.results[at] = Result{ID: id, Err: errUnfinished}
		guarded, err := b.g.admit(ctx, id)
		if err != nil {
			b.results[at].Err = err
			continue
		}
		if original, seen := first[id]; seen && guarded {
			copies[at] = original
			continue
		}
		first[id] = at
		b.open[at] = true
		originals = append(originals, at)
	}
	return originals, copies
}

// copied is the result of a second message with the id of another.
func copied(original Result, id string) Result {
	if original.Err == nil {
		return Result{ID: id, Outcome: Duplicate}
	}
	return Result{ID: id, Err: original.Err}
}

// work delivers the messages at some places together, and again in smaller parts when one of them may be to blame for a
// failure. An error is a failure that none of them is to blame for: what is not settled has it as its result.
func (b *batch) work(ctx context.Context, at []int, each bool) error {
	p := &batchPart{batch: b, at: at, each: each}
	res := b.deliver(ctx, p)
	if res.err == nil {
		p.end()
		return nil
	}
	left := b.unsettled(at)
	if err := b.sharedFailure(ctx, res); err != nil && len(left) > 1 {
		b.fail(left, err)
		return err
	}
	if len(left) <= 1 {
		b.fail(left, res.err)
		return b.sharedFailure(ctx, res)
	}
	switch {
	case ofCopy(res.err):
		b.wait = noWait // it has waited as long as it may: from here on only who is in flight is to be found out
	case errors.Is(res.err, ErrInFlight):
		b.wait = noWait
		return b.work(ctx, left, each) // holders in turn, or a locked table: without waiting it shows which
	case each:
		b.savepoints = false // what is left cannot be told apart in one transaction
	case b.savepoints:
		return b.work(ctx, left, true)
	}
	return b.halve(ctx, left)
}

// halve delivers the two halves of what is left, the second one unless the first has met what no message is to blame for.
func (b *batch) halve(ctx context.Context, left []int) error {
	half := len(left) / 2
	if err := b.work(ctx, left[:half], false); err != nil {
		b.fail(left[half:], err)
		return err
	}
	return b.work(ctx, left[half:], false)
}

// sharedFailure returns the error of a failure that no message is to blame for. When there would be another attempt if
// attempts or time were left, one of them may be to blame: it conflicts each time, or ends the session, or is slow.
func (b *batch) sharedFailure(ctx context.Context, res attemptResult) error {
	switch {
	case errors.Is(res.err, ErrCommitUnknown):
		return res.err
	case ctx.Err() != nil:
		return fmt.Errorf("txidem: not processed, the context ended: %w", ctx.Err())
	case res.decision.concernsHandler(), errors.Is(res.err, ErrInFlight) && b.wait != noWait:
		return nil
	default:
		return res.err
	}
}

func (b *batch) deliver(ctx context.Context, p *batchPart) attemptResult {
	r := &run{g: b.g, mode: p}
	defer func() {
		b.event.Claim += r.event.Claim
		b.event.Handler += r.event.Handler
	}()
	return r.deliver(ctx)
}

// unsettled returns the places without a result.
func (b *batch) unsettled(at []int) []int {
	var left []int
	for _, i := range at {
		if b.open[i] {
			left = append(left, i)
		}
	}
	return left
}

// settle gives a message its result.
func (b *batch) settle(at int, outcome Outcome, err error) {
	b.open[at] = false
	b.results[at].Outcome, b.results[at].Err = outcomeOf(outcome, err)
}

// fail gives messages the error that ended their delivery.
func (b *batch) fail(at []int, err error) {
	for _, i := range at {
		b.settle(i, 0, forMessage(err, b.results[i].ID))
	}
}

// forMessage names the message in an error that names one: the claim of several does not know which it was.
func forMessage(err error, id string) error {
	var inFlight *InFlightError
	if !errors.As(err, &inFlight) || error(inFlight) != err { //nolint:errorlint // only when it is not wrapped
		return err
	}
	named := *inFlight
	named.ID = id
	return &named
}

// sortedIDs returns the ids of the messages that have one, in the order in which they are claimed.
func (b *batch) sortedIDs(at []int) []string {
	var ids []string
	for _, i := range at {
		if id := b.results[i].ID; id != "" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// tell tells the observer of every message.
func (b *batch) tell(ctx context.Context, o Observer, start time.Time) {
	if o == nil {
		return
	}
	b.event.Consumer = b.g.cfg.Consumer
	b.event.Total = time.Since(start)
	for at, r := range b.results {
		e := b.event
		e.ID, e.Outcome, e.Err, e.Attempts = r.ID, r.Outcome, r.Err, b.attempts[at]
		o.tell(ctx, e)
	}
}
