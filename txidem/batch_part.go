package txidem

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/internal/handlertx"
	"github.com/txidem/txidem-go/internal/sqlgen"
)

// noWait is the lock_timeout of a claim that does not wait: 0 would mean for ever.
var noWait any = sqlgen.Timeout(time.Millisecond)

// batchPart is the mode of messages of a batch that are claimed and processed together.
type batchPart struct {
	*batch
	at    []int    // the places of its messages in the batch
	fresh []int    // those that the handler has in this attempt
	ids   []string // theirs, in ascending order

	// each has the handler called for every message by itself, in a savepoint. failed are those whose savepoint was rolled
	// back in this attempt.
	each   bool
	failed map[int]error
}

func (p *batchPart) open(ctx context.Context, t *transaction, before history) (bool, Outcome, error) {
	if before == historyCommitSent || before == historyDoubtful {
		p.giveUpUnguarded()
	}
	p.fresh = p.unsettled(p.at)
	p.ids = p.sortedIDs(p.fresh)
	switch {
	case len(p.fresh) == 0:
		return false, 0, nil
	case len(p.ids) == 0:
		err := p.g.beginUnguarded(ctx, t)
		return err == nil, 0, err
	}
	claimed, err := p.g.beginMany(ctx, t, p.ids, p.wait)
	if err == nil && len(claimed) < len(p.ids) {
		err = p.settleRecorded(ctx, t, claimed, before)
	}
	if err != nil || len(p.fresh) == 0 {
		t.rollback(ctx)
		return false, 0, err
	}
	return true, 0, nil
}

// giveUpUnguarded settles the messages that cannot be asked for, when the outcome of their COMMIT is unknown.
func (p *batchPart) giveUpUnguarded() {
	for _, at := range p.fresh {
		if p.results[at].ID == "" {
			p.settle(at, 0, fmt.Errorf("%w: a message without an id leaves nothing to ask for", ErrCommitUnknown))
		}
	}
}

// settleRecorded settles the messages that were not claimed by what is recorded of them. fresh is what remains.
func (p *batchPart) settleRecorded(ctx context.Context, t *transaction, claimed []string, before history) error {
	var fresh, taken []int
	for _, at := range p.fresh {
		if _, mine := slices.BinarySearch(claimed, p.results[at].ID); mine || p.results[at].ID == "" {
			fresh = append(fresh, at)
		} else {
			taken = append(taken, at)
		}
	}
	found, err := p.g.lookMany(ctx, t, p.sortedIDs(taken), len(fresh) == 0)
	if err != nil {
		return err
	}
	for _, at := range taken {
		id := p.results[at].ID
		outcome, err := p.g.verdict(found[id], id, p.history(at, before))
		p.settle(at, outcome, err)
	}
	p.fresh, p.ids = fresh, claimed
	return nil
}

// history says what the attempts so far can have left behind of a message.
func (p *batchPart) history(at int, before history) history {
	if before == historyNone && p.ran[at] {
		return historyRan
	}
	return before
}

func (p *batchPart) guarded() bool {
	return slices.ContainsFunc(p.fresh, func(at int) bool { return p.results[at].ID != "" })
}

func (p *batchPart) attempt(ctx context.Context, r *run) attemptResult { return r.transact(ctx, p) }

func (p *batchPart) claimed() (string, []string) { return "", p.ids }

func (p *batchPart) handle(ctx context.Context, tx *handlertx.Tx) error {
	for _, at := range p.fresh {
		p.ran[at] = true
	}
	if p.each {
		return p.runEach(ctx, tx)
	}
	return p.call(ctx, tx, p.fresh)
}

// runEach runs the messages one by one, each in a savepoint, and takes back the claims of those that fail.
func (p *batchPart) runEach(ctx context.Context, tx *handlertx.Tx) error {
	p.failed = map[int]error{}
	var unclaim []string
	for _, at := range p.fresh {
		failure, err := p.inSavepoint(ctx, tx, at)
		if err != nil {
			return err
		}
		if failure != nil {
			p.failed[at] = failure
			if id := p.results[at].ID; id != "" {
				unclaim = append(unclaim, id)
			}
		}
	}
	if len(unclaim) == 0 {
		return nil
	}
	tag, err := tx.Exec(ctx, p.g.sql.DeleteMany, unclaim, p.g.consumer)
	if err == nil && tag.RowsAffected() != int64(len(unclaim)) {
		err = fmt.Errorf("txidem: %d claims of failed messages were to be taken back, and %d were there",
			len(unclaim), tag.RowsAffected())
	}
	return err
}

// call calls the handler with some of the messages.
func (p *batchPart) call(ctx context.Context, tx pgx.Tx, fresh []int) error {
	for _, at := range fresh {
		p.attempts[at]++
	}
	return p.fn(ctx, tx, fresh)
}

// inSavepoint runs one message. failure is the message's own; with err the transaction is not to go on.
func (p *batchPart) inSavepoint(ctx context.Context, tx *handlertx.Tx, at int) (failure, err error) {
	savepoint, err := tx.Savepoint(ctx)
	if err != nil {
		return nil, err
	}
	failure = p.call(ctx, savepoint.Handed(), []int{at}) // it ends a savepoint of ours as little as a transaction
	conn := tx.PgConn()
	if failure == nil && conn.TxStatus() == handlertx.StatusAborted {
		failure = errHiddenFailure
	}
	switch {
	case failure == nil:
		return nil, savepoint.Commit(ctx)
	case ctx.Err() != nil, conn.IsClosed(), !p.isolated(failure, tx.Use()):
		return nil, failure
	default:
		return failure, savepoint.Rollback(ctx)
	}
}

// isolated reports whether a failure is the message's own, so that rolling back its savepoint is all there is to do.
func (p *batchPart) isolated(err error, use handlertx.Use) bool {
	d, _ := decide(failure{phase: phaseHandler, err: err, use: use})
	return d == finalHandler && use == handlertx.Use{Doubtful: use.Doubtful}
}

// end settles what a successful delivery has processed.
func (p *batchPart) end() {
	for _, at := range p.unsettled(p.at) {
		switch {
		case p.failed[at] != nil:
			p.settle(at, 0, p.failed[at])
		case p.results[at].ID == "":
			p.settle(at, Unguarded, nil)
		default:
			p.settle(at, Processed, nil)
		}
	}
}
