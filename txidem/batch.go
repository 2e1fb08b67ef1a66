package txidem

import (
	"context"

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
// When h fails, COMMIT is refused, or the retries are spent, nothing of the attempt is stored, and the messages are tried
// again in halves, each in a transaction of its own, until those that fail are alone. They get their errors, all others are
// processed. That takes about 2·log2(n) transactions for one failing message of n, and h is called as often; see
// [WithSavepoints] for the other way. [RetryPolicy] bounds each part by itself, so that h may be called more often, and for
// longer, than it says: give ctx the deadline of the batch. A copy in flight makes the batch wait once, for
// [Config.InFlightWait], or twice that when copies take over from each other or the table is locked; then the messages are
// divided without waiting, and those in flight get ErrInFlight. A failure that no message is to blame for, such as a server
// that is away or an ended ctx, is the result of all messages that are not processed yet.
//
// A hidden COMMIT of h records all messages that were claimed with the one at work. They get ErrTxControl, as in Process,
// and are Duplicates when they are delivered again, also those whose work was not done: look which they are, and have them
// replayed after [Guard.Forget].
//
// With a broker that acks messages one by one, ack those without an error. With one that acks up to an offset (Kafka),
// commit the offset up to the first message with an error, and no further: those behind it that were processed are
// Duplicates when they are delivered again. Park a message whose error is not [Retryable], or that you give up on,
// elsewhere, and count it as done, or the offset never passes it.
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
