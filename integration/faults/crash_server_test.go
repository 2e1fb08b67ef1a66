package faults

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// underLoad is the column of the report for faults at whatever point the deliveries under way have reached.
const underLoad = "under load"

// tally counts what the deliveries of a test came to.
type tally struct {
	processed, duplicates, errors atomic.Int64
	again                         atomic.Int64 // deliveries whose handler ran more than once
	open                          atomic.Int64 // deliveries that are under way
}

func (y *tally) observe(_ context.Context, d txidem.DeliveryEvent) {
	switch {
	case d.Err != nil:
		y.errors.Add(1)
	case d.Outcome == txidem.Duplicate:
		y.duplicates.Add(1)
	default:
		y.processed.Add(1)
	}
	if d.Attempts > 1 {
		y.again.Add(1)
	}
}

// work delivers messages from the queue to the handler until nothing is left.
func work(g *txidem.Guard, q *queue, y *tally, handler func(ctx context.Context, tx pgx.Tx, id string) error) {
	for {
		message, ok := q.take()
		if !ok {
			return
		}
		id := messageID(message)
		y.open.Add(1)
		_, err := g.Process(context.Background(), id, func(ctx context.Context, tx pgx.Tx) error { return handler(ctx, tx, id) })
		y.open.Add(-1)
		q.settle(message, err)
	}
}

// transfer is the handler of the load: an effect of two rows in two statements.
func transfer(ctx context.Context, tx pgx.Tx, id string) error {
	if err := debit(ctx, tx, id); err != nil {
		return err
	}
	return credit(ctx, tx, id)
}

// The server is killed with SIGKILL and restarted, again and again, while several workers deliver: every acked message has
// one whole effect, and nothing else has one.
func TestServerCrashes(t *testing.T) {
	kills := size(t, envServerKills, 8)
	server := startLocal(t, nil)
	prepare(t, server.DSN())
	q, y := newQueue(unlimited, 0.3), &tally{}
	pool := newPool(t, server.DSN())
	g := newGuard(t, pool, func(c *txidem.Config) { c.Observer = y.observe })

	var workers sync.WaitGroup
	defer workers.Wait()
	defer q.stop()
	for range 6 {
		workers.Go(func() { work(g, q, y, transfer) })
	}
	underWay := 0
	for range kills {
		acked, _ := q.counts()
		q.waitAcked(acked + 1 + rand.IntN(40))
		if y.open.Load() > 0 {
			underWay++
		}
		server.Kill()
		require.NoError(t, server.Restart(t.Context()))
	}
	q.close()
	workers.Wait()

	acked, deliveries := q.counts()
	t.Logf("%d kills of the server, %d of them with deliveries under way: %d messages acked after %d deliveries, of which "+
		"%d processed, %d duplicate, %d failed and %d ran the handler again",
		kills, underWay, acked, deliveries, y.processed.Load(), y.duplicates.Load(), y.errors.Load(), y.again.Load())
	const fault = "server killed"
	report.injected(transactional, fault, underLoad, kills)
	require.Positive(t, underWay, "kills with deliveries under way")
	require.Positive(t, y.again.Load()+y.errors.Load(), "deliveries that a kill has hit")
	requireExactlyOnce(t, fault, pool, q.ackedIDs())
}
