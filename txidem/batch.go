package txidem

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Result is what became of one message of a batch. Err is nil when there is an Outcome: ack the message. Otherwise [Settle]
// says what to tell the broker.
type Result struct {
	ID      string
	Outcome Outcome
	Err     error
}

// ProcessBatch delivers many messages to fn in one transaction: it claims the ids, hands fn the transaction and the indexes
// of those that are new, and commits. The results are in the order of ids. A copy of an id within ids is a Duplicate of the
// first, or has its error; an empty id is always new.
//
// When fn fails, nothing of the attempt is stored, and the messages are delivered again in smaller parts until those that
// fail are alone: fn is called about 2·log2(n) times more for one failing message of n, or once for each message with
// [WithSavepoints]. The others are processed. A failure that no message is to blame for, such as a server that is away or an
// ended ctx, is the result of all messages that are not processed yet. See "Batches" in the package's documentation.
//
// ProcessBatch is safe for concurrent use.
func (g *Guard) ProcessBatch(
	ctx context.Context, ids []string, fn func(ctx context.Context, tx pgx.Tx, fresh []int) error, opts ...BatchOption,
) []Result {
	if err := g.pooled(); err != nil {
		return failedResults(ids, err)
	}
	if fn == nil {
		return failedResults(ids, errors.New("txidem: ProcessBatch needs a handler, got nil"))
	}
	return g.batch(ctx, ids, collectBatch(g.cfg.Observer, opts), fn)
}

func failedResults(ids []string, err error) []Result {
	results := make([]Result, len(ids))
	for i, id := range ids {
		results[i] = Result{ID: id, Err: err}
	}
	return results
}

// WrapBatch makes a handler of batches from h, over [Guard.ProcessBatch]. fresh has the new messages in the order of the
// batch. WrapBatch panics when g, id or h is nil. The result is safe for concurrent use if h is.
func WrapBatch[M any](
	g *Guard, id func(M) string, h func(ctx context.Context, tx pgx.Tx, fresh []M) error, opts ...BatchOption,
) func(context.Context, []M) []Result {
	if g == nil || id == nil || h == nil {
		panic("txidem: WrapBatch needs a guard, an id function and a handler")
	}
	return func(ctx context.Context, msgs []M) []Result {
		ids := make([]string, len(msgs))
		for i, m := range msgs {
			ids[i] = id(m)
		}
		return g.ProcessBatch(ctx, ids, func(ctx context.Context, tx pgx.Tx, fresh []int) error {
			some := make([]M, len(fresh))
			for i, at := range fresh {
				some[i] = msgs[at]
			}
			return h(ctx, tx, some)
		}, opts...)
	}
}
