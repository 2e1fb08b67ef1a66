package txidem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// delivery is a message, or a part of a batch, on its way through its attempts. The loop is in deliver, one attempt in
// attempt, and what an attempt's failure means for the next one in the small methods below; the end of a transaction is in
// transaction.go.
type delivery struct {
	g      *Guard
	load   load
	told   Delivery
	budget budget
	ran    bool // the handler had a claim to run under

	// unknown is set from a COMMIT whose outcome is not known until it is resolved. Then attempts run under resolving
	// instead of the caller's context: the question has to be answered whatever became of the caller.
	unknown   *commitUnknownError
	resolving context.Context //nolint:containedctx // lives and ends with deliver

	// The load is one of these, or a part of a batch.
	message message
	queue   queue
}

// ending is the result of one attempt, and how the delivery goes on.
type ending struct {
	outcome Outcome
	err     error
	next    next
}

func failed(err error, n next) ending { return ending{err: err, next: n} }

// deliver makes attempts until one result stands or the budget is spent.
func (d *delivery) deliver(ctx context.Context) ending {
	d.budget = d.g.newBudget()
	release := func() {}
	defer func() { release() }()
	for {
		e := d.attempt(ctx)
		if d.unknown != nil && d.resolving == nil {
			release()
			d.resolving, release = d.g.resolvingContext(ctx)
		}
		if !d.again(ctx, e) {
			return e
		}
	}
}

// again decides whether there is another attempt, and pauses before it.
func (d *delivery) again(ctx context.Context, e ending) bool {
	if d.unknown != nil && !e.next.stands() {
		return sleep(d.resolving, d.budget.pause(e.next))
	}
	return d.budget.allows(ctx, e.next, d.told.Attempts)
}

// resolvingContext is for finding out what became of a COMMIT. It goes on when the caller's context has ended, and leaves
// room for a connection to be had and for a claim to wait.
func (g *Guard) resolvingContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), g.cfg.InFlightWait+endLimit)
}

// attempt is one transaction: BEGIN and claim, the handler, COMMIT. Its connection is back in the pool when it returns, so
// that the next attempt can have it, or the place of it.
func (d *delivery) attempt(ctx context.Context) ending {
	if d.queue.fn != nil && d.unknown == nil {
		return d.express(ctx)
	}
	opening := ctx
	if d.unknown != nil {
		opening = d.resolving
	}
	start := time.Now()
	conn, err := d.g.acquire(opening)
	if err != nil {
		return d.notOpened(opening, err, false)
	}
	defer conn.Release()

	t, outcome, err := d.load.open(opening, conn, d.past())
	d.told.Claim += time.Since(start)
	switch {
	case err != nil:
		return d.notOpened(opening, err, conn.Conn().IsClosed())
	case t == nil:
		return ending{outcome: outcome}
	}
	defer t.rollback(ctx) // for a panic; does nothing after commit
	if err := d.rolledBack(ctx); err != nil {
		return failed(err, theirsUnless(ctx))
	}
	return d.work(ctx, t)
}

// acquire takes a connection from the pool.
func (g *Guard) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	conn, err := g.db.Acquire(ctx)
	if err != nil {
		return nil, withContext(ctx, "take a connection from the pool", err)
	}
	return conn, nil
}

// past says what the attempts so far can have left behind.
func (d *delivery) past() past {
	switch {
	case d.unknown != nil && d.unknown.doubtful:
		return doubted
	case d.unknown != nil:
		return committing
	case d.ran:
		return ran
	default:
		return nothing
	}
}

// notOpened judges a failure before the handler ran. lost says that the connection is closed.
func (d *delivery) notOpened(ctx context.Context, err error, lost bool) ending {
	n := beforeHandler(ctx, err, lost)
	if d.unknown != nil {
		err = fmt.Errorf("%w: asking for it failed: %w", d.unknown, err)
	}
	return failed(err, n)
}

// rolledBack is called with a new claim in hand. When a COMMIT was unknown, that claim proves that it did not take place,
// since the key would be taken. It returns the error to end with, or nil when the handler is to run.
func (d *delivery) rolledBack(ctx context.Context) error {
	if d.unknown == nil {
		return nil
	}
	cause := d.unknown.cause
	d.unknown, d.resolving = nil, nil
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("txidem: not committed, the context ended: %w: %w", ctx.Err(), cause)
	case !d.mayRerun(cause):
		return fmt.Errorf("txidem: not committed, nothing is stored: %w", cause)
	default:
		return nil
	}
}

// mayRerun reports whether a COMMIT that failed for this cause, and did not take place, is followed by another run.
// The server's own answer to COMMIT is the handler's business; a broken connection is not.
func (d *delivery) mayRerun(cause error) bool {
	answered := sqlState(cause) != "" && !fatal(cause)
	return !answered && d.budget.left(d.told.Attempts)
}

// work runs the handler and ends the transaction.
func (d *delivery) work(ctx context.Context, t *transaction) ending {
	d.ran = true
	h := hand(t)
	defer h.state.takeBack()
	err := d.told.call(func() error { return d.load.run(ctx, h) })
	h.state.takeBack()
	misuse, lost, doubtful := h.state.found()
	t.doubtful = doubtful
	if err != nil || misuse != nil {
		closed := t.conn.Conn().IsClosed()
		return failed(withMisuse(err, misuse), afterHandler(ctx, err, misuse, lost, closed))
	}
	return d.afterCommit(t.commit(ctx), lost)
}

// withMisuse keeps the handler's error first in the chain, and as it is when it says all there is to say.
func withMisuse(err, misuse error) error {
	if misuse == nil || errors.Is(err, misuse) {
		return err
	}
	if err == nil {
		return misuse
	}
	return errors.Join(err, misuse)
}

// afterCommit judges the end of the transaction. lost is the error of the statement that saw the connection close, if one
// did.
func (d *delivery) afterCommit(err, lost error) ending {
	switch {
	case err != nil:
		return d.notCommitted(err, lost)
	case d.load.guarded():
		return ending{outcome: Processed}
	default:
		return ending{outcome: Unguarded}
	}
}

func (d *delivery) notCommitted(err, lost error) ending {
	var unknown *commitUnknownError
	switch {
	case errors.As(err, &unknown) && d.load.guarded():
		d.unknown = unknown
		return failed(err, soon)
	case errors.As(err, &unknown):
		return failed(fmt.Errorf("%w: a message without an id leaves nothing to ask for", err), stop)
	case errors.Is(err, errConnLost) && lost != nil && (ofContext(lost) || unsendable(lost)):
		return failed(fmt.Errorf("%w: %w", err, lost), theirs) // closed by the handler's own deadline, or statement
	case errors.Is(err, errConnLost), conflicted(err):
		return failed(err, rerun)
	case errors.Is(err, ErrTxAborted), sqlState(err) != "":
		return failed(err, theirs)
	default:
		return failed(err, stop)
	}
}
