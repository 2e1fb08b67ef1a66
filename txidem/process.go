package txidem

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Handler does the work of one message through tx. See [Guard.Process].
type Handler = func(ctx context.Context, tx pgx.Tx) error

// errUnfinished is what an observer is told when the handler did not return.
var errUnfinished = errors.New("txidem: the handler panicked or called runtime.Goexit")

// Process runs fn at most once to a committed end for the message id. It begins a transaction, claims the id in it, hands
// the transaction to fn and commits: what fn writes through tx and the record of the message become visible together or
// not at all. Anything else fn does can happen more than once.
//
// The result is nil with Processed, Duplicate (fn was not called) or Unguarded (id is empty, see [Config.RequireID]): ack
// the message. Or it is an error: have the message redelivered, unless [Retryable] says that this cannot help.
//
// When fn returns an error, that error comes back and nothing is stored. When fn panics or calls runtime.Goexit, nothing
// is stored and the panic goes on. When ctx ends, before or after fn has returned, nothing is stored, unless COMMIT was on
// its way by then: see ErrCommitUnknown.
//
// tx is a pgx.Tx in every respect but one: its Commit and Rollback refuse, and the delivery then fails with ErrTxControl
// whatever fn returns. Begin makes savepoints, whose Commit and Rollback work as usual. tx must not be used after fn has
// returned. fn should not use the pool that the Guard was made with: with every connection held by a handler that
// waits for another connection, all of them wait until their contexts end.
//
// Process is safe for concurrent use.
func (g *Guard) Process(ctx context.Context, id string, fn Handler, opts ...Option) (Outcome, error) {
	if fn == nil {
		return 0, errors.New("txidem: Process needs a handler, got nil")
	}
	start := time.Now()
	o := collect(g.cfg.Observer, opts)
	d := Delivery{Consumer: g.cfg.Consumer, ID: id, Err: errUnfinished}
	defer func() {
		d.Total = time.Since(start)
		o.observer.tell(ctx, d)
	}()
	d.Outcome, d.Err = g.process(ctx, id, fn, &d)
	return d.Outcome, d.Err
}

func (g *Guard) process(ctx context.Context, id string, fn Handler, d *Delivery) (Outcome, error) {
	guarded, err := checkID(id, g.cfg.RequireID)
	if err != nil {
		return 0, err
	}
	return g.attempt(ctx, id, guarded, fn, d)
}

// attempt is one transaction: BEGIN and claim, the handler, COMMIT.
func (g *Guard) attempt(ctx context.Context, id string, guarded bool, fn Handler, d *Delivery) (Outcome, error) {
	start := time.Now()
	conn, err := g.db.Acquire(ctx)
	if err != nil {
		return 0, withContext(ctx, "take a connection from the pool", err)
	}
	defer conn.Release()

	t, claimed, err := g.open(ctx, conn, id, guarded)
	d.Claim += time.Since(start)
	if err != nil {
		return 0, err
	}
	if !claimed {
		return g.lookAndRollback(ctx, t, id)
	}
	defer t.rollback(ctx) // for a panic; does nothing after commit
	if err := handle(ctx, t, fn, d); err != nil {
		return 0, err
	}
	err = t.commit(ctx)
	if !guarded {
		return outcomeOf(Unguarded, err)
	}
	return outcomeOf(Processed, err)
}

// open begins the transaction and says whether the handler is to run in it.
func (g *Guard) open(ctx context.Context, conn *pgxpool.Conn, id string, guarded bool) (*transaction, bool, error) {
	if guarded {
		return g.begin(ctx, conn, g.cfg.TxOptions, id)
	}
	t, err := g.beginUnguarded(ctx, conn)
	return t, err == nil, err
}

// handle runs the handler on the transaction. An error means that the transaction must not be committed.
func handle(ctx context.Context, t *transaction, fn Handler, d *Delivery) error {
	h := handOver(t.tx)
	defer h.takeBack()
	err := d.call(func() error { return fn(ctx, h) })
	if misuse := h.misuse(); misuse != nil && !errors.Is(err, ErrTxControl) {
		return errors.Join(err, misuse)
	}
	return err
}
