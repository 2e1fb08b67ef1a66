package txidem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/internal/handlertx"
)

// mode is what a delivery carries through its attempts, and how: a single message, a pipeline, or a part of a batch.
type mode interface {
	// attempt makes one attempt. What it leaves behind is gone, or committed, when it returns.
	attempt(ctx context.Context, r *run) attemptResult

	// guarded reports whether there is a claim, which can be asked for when the outcome of COMMIT is unknown.
	guarded() bool

	// claimed returns the id that is claimed while the handler runs, or those of a batch, in ascending order.
	claimed() (id string, ids []string)
}

// run is one delivery on its way through its attempts.
type run struct {
	g          *Guard
	mode       mode
	event      DeliveryEvent
	budget     budget
	tx         transaction    // of the attempt
	handed     handlertx.Room // of the first call of the handler
	held       held           // the same
	handlerRan bool

	// unknown is set from a COMMIT whose outcome is not known until it is resolved. Then attempts run under resolving
	// instead of the caller's context: the question has to be answered whatever became of the caller.
	unknown   *commitUnknownError
	resolving context.Context //nolint:containedctx // lives and ends with deliver
	release   context.CancelFunc
}

// attemptResult is what came of one attempt, and how the delivery goes on.
type attemptResult struct {
	outcome  Outcome
	err      error
	decision decision
}

// deliver makes attempts until one result stands or the budget is spent.
func (r *run) deliver(ctx context.Context) attemptResult {
	r.budget = r.g.newBudget()
	defer r.resolved()
	for {
		res := r.mode.attempt(ctx, r)
		if res.decision == resolve {
			r.resolve(ctx, res.err)
		}
		if !r.again(ctx, res.decision) {
			return res
		}
	}
}

// again decides whether there is another attempt, and pauses before it.
func (r *run) again(ctx context.Context, d decision) bool {
	if r.unknown != nil && !d.stands() {
		return sleep(r.resolving, r.budget.pause(d))
	}
	return r.budget.allows(ctx, d, r.event.Attempts)
}

// resolve has the attempts that follow find out what became of a COMMIT: they claim again. That goes on when the caller's
// context has ended, and leaves room for a connection to be had and for a claim to wait.
func (r *run) resolve(ctx context.Context, err error) {
	_ = errors.As(err, &r.unknown)
	r.resolving, r.release = context.WithTimeout(context.WithoutCancel(ctx), r.g.cfg.InFlightWait+resolveLimit)
}

// resolved ends the search.
func (r *run) resolved() {
	if r.release != nil {
		r.release()
	}
	r.unknown, r.resolving, r.release = nil, nil, nil
}

// opening is the context for all that comes before the handler.
func (r *run) opening(ctx context.Context) context.Context {
	if r.unknown != nil {
		return r.resolving
	}
	return ctx
}

// history says what the attempts so far can have left behind.
func (r *run) history() history {
	switch {
	case r.unknown != nil && r.unknown.doubtful:
		return historyDoubtful
	case r.unknown != nil:
		return historyCommitSent
	case r.handlerRan:
		return historyRan
	default:
		return historyNone
	}
}

// work is what is done in one transaction.
type work interface {
	// open begins the transaction and claims in it, where there is something to claim. Without an error the transaction is
	// open, and handle is to be called in it, or the outcome stands.
	open(ctx context.Context, t *transaction, before history) (opened bool, outcome Outcome, err error)

	// handle calls the handler.
	handle(ctx context.Context, tx *handlertx.Tx) error
}

// transact makes an attempt of one transaction: BEGIN and claim, the handler, COMMIT. Its connection is back in the pool
// when it returns, so that the next attempt can have it, or the place of it.
func (r *run) transact(ctx context.Context, w work) attemptResult {
	opening := r.opening(ctx)
	start := time.Now()
	conn, err := r.g.acquire(opening)
	if err != nil {
		r.event.Claim += time.Since(start)
		return r.notOpened(opening, err, false)
	}
	defer conn.Release()

	r.tx = transaction{conn: conn}
	defer r.tx.rollback(ctx) // for a panic; does nothing after commit
	opened, outcome, err := w.open(opening, &r.tx, r.history())
	r.event.Claim += time.Since(start)
	switch {
	case err != nil:
		return r.notOpened(opening, err, conn.Conn().IsClosed())
	case !opened:
		return attemptResult{outcome: outcome}
	}
	if res := r.rolledBack(ctx); res.err != nil {
		return res
	}
	return r.underClaim(ctx, &r.tx, w)
}

// acquire takes a connection from the pool.
func (g *Guard) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	conn, err := g.db.Acquire(ctx)
	if err != nil {
		return nil, g.whileHeld(ctx, withContext(ctx, "take a connection from the pool", err))
	}
	return conn, nil
}

// notOpened judges a failure before the handler ran.
func (r *run) notOpened(ctx context.Context, err error, closed bool) attemptResult {
	d, err := decide(failure{phase: phaseOpen, err: err, ctxErr: ctx.Err(), closed: closed})
	if r.unknown != nil {
		err = fmt.Errorf("%w: asking for it failed: %w", r.unknown, err)
	}
	return attemptResult{err: err, decision: d}
}

// rolledBack is called with a new claim in hand. When a COMMIT was unknown, that claim proves that it did not take place,
// since the key would be taken. Its result has no error when the handler is to run.
func (r *run) rolledBack(ctx context.Context) attemptResult {
	if r.unknown == nil {
		return attemptResult{}
	}
	cause := r.unknown.cause
	r.resolved()
	d, err := decide(failure{phase: phaseRolledBack, err: cause, ctxErr: ctx.Err()})
	if d == rerun && r.budget.left(r.event.Attempts) {
		return attemptResult{}
	}
	return attemptResult{err: err, decision: d}
}

// underClaim runs the handler and ends the transaction.
func (r *run) underClaim(ctx context.Context, t *transaction, w work) attemptResult {
	tx, holding := r.hand(ctx, t)
	r.handlerRan = true
	defer tx.Revoke()
	err := r.event.call(holding, func() error { return w.handle(holding, tx) })
	use := tx.Revoke()
	t.doubtful = use.Doubtful
	if err != nil || use.Misuse != nil {
		return r.handlerFailed(ctx, withMisuse(err, use.Misuse), use, t.conn.Conn())
	}
	return r.afterCommit(ctx, t.commit(ctx), use)
}

// hand makes what the handler gets. What it had in an earlier attempt stays revoked, whoever has kept it.
func (r *run) hand(ctx context.Context, t *transaction) (*handlertx.Tx, *held) {
	room := &r.handed
	if r.handlerRan {
		room = &handlertx.Room{}
	}
	return room.New(t.conn.Conn(), t.tx), r.hold(ctx)
}

// hold makes the context that the handler gets.
func (r *run) hold(ctx context.Context) *held {
	h := &r.held
	if h.Context != nil {
		h = &held{}
	}
	h.Context, h.g = ctx, r.g
	h.id, h.ids = r.mode.claimed()
	return h
}

// withMisuse keeps the handler's error first in the chain, and as it is when it says all there is to say.
func withMisuse(err, misuse error) error {
	switch {
	case misuse == nil, errors.Is(err, misuse):
		return err
	case err == nil:
		return misuse
	default:
		return fmt.Errorf("%w: %w", err, misuse)
	}
}

// handlerFailed judges a handler that failed. Its own errors stand; what befell its transaction is tried again.
func (r *run) handlerFailed(ctx context.Context, err error, use handlertx.Use, conn *pgx.Conn) attemptResult {
	d, err := decide(failure{phase: phaseHandler, err: err, use: use, ctxErr: ctx.Err(), closed: conn.IsClosed()})
	return attemptResult{err: err, decision: d}
}

// afterCommit judges the end of the transaction.
func (r *run) afterCommit(ctx context.Context, err error, use handlertx.Use) attemptResult {
	switch {
	case err != nil:
		d, err := decide(failure{phase: phaseCommit, err: err, use: use, ctxErr: ctx.Err(), guarded: r.mode.guarded()})
		return attemptResult{err: err, decision: d}
	case r.mode.guarded():
		return attemptResult{outcome: Processed}
	default:
		return attemptResult{outcome: Unguarded}
	}
}
