package txidem

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Result is what became of one message of a batch. Err is nil when there is an Outcome: ack the message. Otherwise have it
// redelivered, unless [Retryable] says that this cannot help.
type Result struct {
	ID      string
	Outcome Outcome
	Err     error
}

// WrapBatch makes a handler of batches from h. It claims all messages of a batch in one transaction, gives h those that
// are new, and commits: one round trip for the claims and one for COMMIT, however many messages there are, and one
// more where some are duplicates. The results are in the order of the messages.
//
// fresh has the new messages in the order of the batch, each id once, and the messages without an id, which are always new.
// What h writes through tx and the records of all of fresh become visible together or not at all; the rest is as in
// [Guard.Process]. A second message with the same id has the result of the first: Duplicate when that was processed, its
// error when that failed. A message whose id cannot be stored fails by itself.
//
// When h fails, or COMMIT is refused, nothing of the attempt is stored, and the messages are tried again in halves, each in
// a transaction of its own, until those that fail are alone. They get their errors, all others are processed. That takes
// about 2·log2(n) transactions for one failing message of n, and h is called as often; see [WithSavepoints] for the other
// way. A copy in flight makes the batch wait once, for [Config.InFlightWait]; then the messages are divided without
// waiting, and those in flight get ErrInFlight. A failure that no message is to blame for, such as a server that is away
// or an ended ctx, is the result of all messages that are not processed yet.
//
// With a broker that acks messages one by one, ack those without an error. With one that acks up to an offset (Kafka),
// commit the offset up to the first message with an error, and no further: those behind it that were processed are
// Duplicates when they are delivered again.
//
// Claims are made in the order of the ids, so that batches with common messages do not deadlock each other. Memory is that
// of the ids, the results and fresh, a few hundred bytes a message, and on the server the array of ids. An observer is told
// of each message; the durations are those of the whole batch.
//
// WrapBatch panics when g, id or h is nil. The result is safe for concurrent use if h is.
func WrapBatch[M any](g *Guard, id func(M) string, h func(ctx context.Context, tx pgx.Tx, fresh []M) error, opts ...Option) func(context.Context, []M) []Result {
	if g == nil || id == nil || h == nil {
		panic("txidem: WrapBatch needs a guard, an id function and a handler")
	}
	return func(ctx context.Context, msgs []M) []Result {
		ids := make([]string, len(msgs))
		for i, m := range msgs {
			ids[i] = id(m)
		}
		return g.batch(ctx, ids, collect(g.cfg.Observer, opts), func(ctx context.Context, tx pgx.Tx, fresh []int) error {
			some := make([]M, len(fresh))
			for i, at := range fresh {
				some[i] = msgs[at]
			}
			return h(ctx, tx, some)
		})
	}
}

// batchHandler does the work of the messages at some places of a batch.
type batchHandler func(ctx context.Context, tx pgx.Tx, fresh []int) error

// batch is the work on the messages of one call.
type batch struct {
	g          *Guard
	fn         batchHandler
	savepoints bool
	wait       any // the lock_timeout of the next claim

	results  []Result
	open     []bool   // which of them are still to be settled
	attempts []int    // how often the handler had each message
	told     Delivery // durations
}

// batch delivers messages by their ids.
func (g *Guard) batch(ctx context.Context, ids []string, o options, fn batchHandler) []Result {
	b := &batch{
		g: g, fn: fn, savepoints: o.savepoints, wait: g.wait,
		results: make([]Result, len(ids)), open: make([]bool, len(ids)), attempts: make([]int, len(ids)),
	}
	defer b.tell(ctx, o.observer, time.Now())
	originals, copies := b.sort(ids)
	_ = b.work(ctx, originals, false) // is in the results
	for at, original := range copies {
		b.results[at] = copied(b.results[original], ids[at])
	}
	return b.results
}

// sort refuses the ids that cannot be stored, and tells the first message of each id from its copies.
func (b *batch) sort(ids []string) (originals []int, copies map[int]int) {
	copies = map[int]int{}
	first := make(map[string]int, len(ids))
	for at, id := range ids {
		b.results[at] = Result{ID: id, Err: errUnfinished}
		guarded, err := checkID(id, b.g.cfg.RequireID)
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
	p := &part{batch: b, at: at, each: each}
	e := b.deliver(ctx, p)
	if e.err == nil {
		p.end()
		return nil
	}
	left := b.unsettled(at)
	if e.next != theirs || len(left) <= 1 {
		b.fail(left, e.err)
		if e.next == theirs {
			return nil
		}
		return e.err
	}
	if ofCopy(e.err) {
		b.wait = noWait // it has waited as long as it may: from here on only who is in flight is to be found out
	} else if b.savepoints && !each {
		return b.work(ctx, left, true)
	}
	half := len(left) / 2
	err := b.work(ctx, left[:half], false)
	if err != nil {
		b.fail(left[half:], err)
		return err
	}
	return b.work(ctx, left[half:], false)
}

func (b *batch) deliver(ctx context.Context, p *part) ending {
	d := &delivery{g: b.g, load: p}
	e := d.deliver(ctx)
	b.told.Claim += d.told.Claim
	b.told.Handler += d.told.Handler
	return e
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
	b.told.Consumer = b.g.cfg.Consumer
	b.told.Total = time.Since(start)
	for at, r := range b.results {
		d := b.told
		d.ID, d.Outcome, d.Err, d.Attempts = r.ID, r.Outcome, r.Err, b.attempts[at]
		o.tell(ctx, d)
	}
}
