package txidem

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// PipelineHandler queues the statements of one message in b. See [Guard.Pipeline].
type PipelineHandler = func(ctx context.Context, b *pgx.Batch) error

// Pipeline is [Guard.Process] for a handler that knows its statements in advance: claim, statements and commit travel in one
// round trip, where Process takes three. Statements that pgx has to prepare, on a new connection and after one of them
// failed, take more. fn queues the statements in b and sends nothing itself; it runs before it is known whether the message
// is new, so that it must do nothing else. With an error of fn nothing is sent.
//
// Choose it for handlers that write and need no answer before their last statement, where the round trips to the server
// count. CopyFrom, savepoints by Begin and large objects need Process. A duplicate costs a second round trip and writes
// nothing, as in Process, but the server logs an ERROR for it, whose text begins with "invalid input syntax" and
// has "txidem: not claimed" in it: the claim fails so that the server passes over the statements behind it. Where most
// deliveries are duplicates Process is the better choice.
//
// Statements with callbacks (Query, QueryRow or Exec of the *pgx.QueuedQuery) take two round trips: their callbacks run
// before COMMIT is sent, and an error of one rolls back. So does the error of a statement; it comes back with the statement's
// number. Transaction control is refused with ErrTxControl before anything is sent, and so is COPY FROM STDIN; what a string
// of several statements hides, in the simple protocol, is found before COMMIT.
//
// Results, duplicates (but for fn, which has queued by then), copies in flight, retries and unknown commits are those of
// Process, and so is the rest of what is said there. fn is called once for each run of its statements: again, with a new
// batch, after a conflict or a lost connection. A connection that breaks with the statements on their way costs an attempt,
// since they may have run. So does one that was dead in the pool, unless the server had said so.
//
// The statements are one transaction: PostgreSQL's implicit one for a batch of INSERT, UPDATE, DELETE, MERGE, SELECT and
// the like, BEGIN and COMMIT around it for others and with [Config.TxOptions].
//
// Two bounds are weaker than in Process, since the answer to the claim comes with all the others. A wait for copies
// that take over from each other, each within [Config.InFlightWait], and for a lock on the record table itself, ends with
// ctx only: give it a deadline. And no IdleLimit frees the message of a worker that is cut off from the network half-way
// through sending a pipeline; the server's TCP keepalive does.
//
// Pipeline is safe for concurrent use.
func (g *Guard) Pipeline(ctx context.Context, id string, fn PipelineHandler, opts ...Option) (Outcome, error) {
	if fn == nil {
		return 0, errors.New("txidem: Pipeline needs a handler, got nil")
	}
	d := g.newDelivery(id)
	d.queue = queue{message: &d.message, fn: fn}
	d.load = &d.queue
	return d.observed(ctx, opts)
}

// WrapPipeline makes a broker handler from h, as [Wrap] does, for a handler that queues its statements. See
// [Guard.Pipeline] for what h may queue. It panics when g, id or h is nil. The result is safe for concurrent use if h is.
func WrapPipeline[M any](g *Guard, id func(M) string, h func(context.Context, *pgx.Batch, M) error, opts ...Option) func(context.Context, M) error {
	if g == nil || id == nil || h == nil {
		panic("txidem: WrapPipeline needs a guard, an id function and a handler")
	}
	return func(ctx context.Context, msg M) error {
		_, err := g.Pipeline(ctx, id(msg), func(ctx context.Context, b *pgx.Batch) error { return h(ctx, b, msg) }, opts...)
		return err
	}
}
