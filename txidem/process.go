package txidem

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Handler does the work of one message through tx. See [Guard.Process].
type Handler = func(ctx context.Context, tx pgx.Tx) error

// Process runs fn at most once to a committed end for the message id. It begins a transaction, claims the id in it, hands
// the transaction to fn and commits: what fn writes through tx and the record of the message become visible together or
// not at all. Anything else fn does can happen more than once.
//
// The result is nil with Processed, Duplicate (fn was not called) or Unguarded (id is empty, see [Config.RequireID]): ack
// the message. Or it is an error: have the message redelivered, unless [Retryable] says that this cannot help.
//
// When fn returns an error, that error comes back and nothing is stored, but for what a hidden COMMIT of fn's own has
// stored. When fn panics or calls runtime.Goexit, nothing is stored and the panic goes on. When ctx ends, before or after
// fn has returned, nothing is stored and fn is not called again, unless COMMIT was on its way by then.
//
// fn may be called several times in one delivery, each time with a new transaction: after a serialization failure, a
// deadlock or a lost connection (see [RetryPolicy]). When the connection breaks while COMMIT is on its way, Process finds
// out what became of it by claiming the id again on another connection: the old transaction either has committed, or can
// not commit any more once the new claim is ours. That takes [Config.InFlightWait] and five seconds at most, also beyond
// the end of ctx; then it is ErrCommitUnknown. Processed then says that the message is processed, be it by this delivery or
// by a copy that came in between. For a handler that may have committed by itself, having used tx.Conn or a string of
// several statements, a record proves too little: it gets an error, and the redelivery is a Duplicate.
//
// tx is a pgx.Tx in every respect but one: its end is not the handler's. Commit, Rollback and statements that begin with
// transaction control other than savepoints are refused, and the delivery then fails with ErrTxControl whatever fn returns.
// What ends the transaction unseen, in a string of several statements or through tx.Conn(), is found before COMMIT and is
// ErrTxControl too; what such a statement committed stays, and the redelivery is a Duplicate. Begin makes savepoints, whose
// Commit and Rollback work as usual. One statement may be in progress at a time: a second one, begun by another goroutine or
// while rows or a batch are open, is ErrTxBusy, and so is the delivery. A statement that failed on the server and was not
// rolled back to a savepoint is ErrTxAborted when fn returns nil; an error that never reached the server, such as an argument
// that cannot be encoded, is fn's to return. tx must not be used after fn has returned. fn should not use the
// pool that the Guard was made with: with every connection held by a handler that waits for another connection, all of
// them wait until their contexts end.
//
// Process is safe for concurrent use.
func (g *Guard) Process(ctx context.Context, id string, fn Handler, opts ...Option) (Outcome, error) {
	if fn == nil {
		return 0, errors.New("txidem: Process needs a handler, got nil")
	}
	d := g.newDelivery(id)
	d.message.fn = fn
	d.load = &d.message
	return d.observed(ctx, opts)
}

// newDelivery makes the delivery of one message.
func (g *Guard) newDelivery(id string) *delivery {
	return &delivery{g: g, message: message{g: g, id: id}, told: Delivery{Consumer: g.cfg.Consumer, ID: id}}
}

// observed makes the delivery of one message.
func (d *delivery) observed(ctx context.Context, opts []Option) (Outcome, error) {
	o := collect(d.g.cfg.Observer, opts)
	return o.observer.observe(ctx, &d.told, func() (_ Outcome, err error) {
		if d.message.hasID, err = checkID(d.message.id, d.g.cfg.RequireID); err != nil {
			return 0, err
		}
		e := d.deliver(ctx)
		return outcomeOf(e.outcome, e.err)
	})
}
