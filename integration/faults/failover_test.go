package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/pgserver"
	"github.com/txidem/txidem-go/txidem"
)

// pair is a primary and its standby, and the way in which workers reach whichever takes writes.
type pair struct {
	primary, standby *pgserver.Local
	dsn              string
}

// startPair starts both and waits until the standby streams in the given state: "sync" or "async".
func startPair(t *testing.T, state string) *pair {
	t.Helper()
	settings := map[string]string{}
	if state == "sync" {
		settings["synchronous_standby_names"] = "*"
	}
	p := &pair{primary: startLocal(t, settings)}
	var err error
	p.standby, err = p.primary.Standby(t.Context(), pgserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := p.standby.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	waitFor(t, connect(t, p.primary.DSN()),
		`SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = $1`, state)
	p.dsn = fmt.Sprintf("postgres://postgres@%s,%s/postgres?sslmode=disable&target_session_attrs=read-write",
		address(t, p.primary.DSN()), address(t, p.standby.DSN()))
	prepare(t, p.dsn)
	return p
}

func address(t *testing.T, dsn string) string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	return fmt.Sprintf("%s:%d", config.Host, config.Port)
}

// failover kills the primary, which stays dead, and promotes the standby.
func (p *pair) failover(t *testing.T) {
	t.Helper()
	p.primary.Kill()
	var promoted bool
	require.NoError(t, connect(t, p.standby.DSN()).QueryRow(t.Context(), `SELECT pg_promote()`).Scan(&promoted))
	require.True(t, promoted, "the standby was not promoted in time")
}

// load is a number of workers that deliver from a queue.
type load struct {
	q       *queue
	y       *tally
	pool    *pgxpool.Pool
	workers sync.WaitGroup
}

func startLoad(t *testing.T, dsn string, workers int) *load {
	t.Helper()
	l := &load{q: newQueue(unlimited, 0.3), y: &tally{}, pool: newPool(t, dsn)}
	g := newGuard(t, l.pool, func(c *txidem.Config) { c.Observer = l.y.observe })
	for range workers {
		l.workers.Go(func() { work(g, l.q, l.y, transfer) })
	}
	t.Cleanup(func() {
		l.q.stop()
		l.workers.Wait()
	})
	return l
}

// run waits until n more messages are acked.
func (l *load) run(n int) {
	acked, _ := l.q.counts()
	l.q.waitAcked(acked + n)
}

// finish waits until everything is acked.
func (l *load) finish() {
	l.q.close()
	l.workers.Wait()
}

func (l *load) String() string {
	acked, deliveries := l.q.counts()
	return fmt.Sprintf("%d messages acked after %d deliveries: %d processed, %d duplicate, %d failed, %d ran the handler again",
		acked, deliveries, l.y.processed.Load(), l.y.duplicates.Load(), l.y.errors.Load(), l.y.again.Load())
}

// A primary with a synchronous standby is killed under load, the standby is promoted, and the workers reconnect by a DSN of
// two hosts: nothing that was acked is lost, and nothing is doubled. A COMMIT is acknowledged once the standby has it, so
// the record and its effect are there whenever an ack is.
//
// The limit is PostgreSQL's own: a COMMIT that waits for the standby and is cancelled, or whose session is terminated, is
// stored and visible on the primary alone. Whoever asks then finds the record, and the message is acked; should the primary
// be lost before the standby has caught up, that message is lost, effect and record together.
func TestFailoverToASynchronousStandby(t *testing.T) {
	const fault = "failover, synchronous standby"
	for round := range size(t, envFailovers, 1) {
		t.Run(fmt.Sprint("round ", round+1), func(t *testing.T) {
			p := startPair(t, "sync")
			l := startLoad(t, p.dsn, 6)
			l.run(50 + rand.IntN(100))
			require.Positive(t, l.y.open.Load(), "deliveries under way")
			p.failover(t)
			l.run(50)
			l.finish()
			report.injected(transactional, fault, underLoad, 1)
			t.Logf("failover to the synchronous standby: %v", l)
			requireWrites(t, l.pool, p.standby)
			requireExactlyOnce(t, fault, l.pool, l.q.ackedIDs())
		})
	}
}

// requireWrites asserts that the pool is connected to that server now.
func requireWrites(t *testing.T, pool *pgxpool.Pool, server *pgserver.Local) {
	t.Helper()
	require.NoError(t, pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
		require.Equal(t, address(t, server.DSN()), conn.Conn().PgConn().Conn().RemoteAddr().String())
		return nil
	}))
}

// mayLose is the group of the report for what is documented to lose messages.
const mayLose = "server that can lose what it acknowledged: the last messages, whole"

// An asynchronous standby lags behind, so what was acked last can be lost: here everything that was acked after the
// standby had stopped receiving. It is never half of a message. Effect and record are one transaction, the standby
// replays whole transactions in their order, so it has both or neither; and a copy that the broker redelivers after
// the failover runs, and makes its one effect on the new primary.
func TestFailoverToAnAsynchronousStandby(t *testing.T) {
	p := startPair(t, "async")
	l := startLoad(t, p.dsn, 6)
	l.run(50)
	stopReceiving(t, p)
	l.q.pause() // nothing is under way: what is lost is what was acked, and no copy of it comes back
	kept := readIDs(t, p.standby)
	l.q.resume()
	l.run(50)
	p.failover(t)
	l.run(50)
	l.finish()

	a, err := readAccount(t.Context(), l.pool)
	require.NoError(t, err)
	acked := l.q.ackedIDs()
	f := a.audit(acked, true)
	t.Logf("failover to the asynchronous standby: %v; of the acked ones %d were lost, and %d were there when it stopped "+
		"receiving", l, len(f.lost), len(kept))
	report.injected(mayLose, "failover, asynchronous standby", underLoad, 1)
	report.lost(mayLose, "failover, asynchronous standby", len(f.lost))
	require.NotEmpty(t, f.lost, "messages that were acked while the standby did not receive")
	require.Empty(t, f.half, "half effects")
	require.Empty(t, f.unmatched, "effects without a record, or records without an effect")
	require.Empty(t, f.doubled, "doubled effects")
	require.Subset(t, acked, kept)
	for _, id := range kept {
		require.NotContains(t, f.lost, id, "the standby had it")
	}
	requireRedelivery(t, l.pool, f.lost[0])
}

// stopReceiving ends the stream to the standby for good.
func stopReceiving(t *testing.T, p *pair) {
	t.Helper()
	alterSystem(t, connect(t, p.standby.DSN()), `SET primary_conninfo = ''`)
	waitFor(t, connect(t, p.primary.DSN()), `SELECT count(*) = 0 FROM pg_stat_replication`)
}

// readIDs returns the ids of the messages that a server has an effect of.
func readIDs(t *testing.T, server *pgserver.Local) []string {
	t.Helper()
	a, err := readAccount(t.Context(), newPool(t, server.DSN()))
	require.NoError(t, err)
	require.True(t, a.audit(nil, true).none(), "the standby shows whole messages")
	var ids []string
	for id := range a.records {
		ids = append(ids, id)
	}
	return ids
}

// requireRedelivery asserts that a message that was lost runs when it is delivered again.
func requireRedelivery(t *testing.T, pool *pgxpool.Pool, id string) {
	t.Helper()
	outcome, err := newGuard(t, pool).Process(t.Context(), id, transferOf(id))
	require.NoError(t, err)
	require.Equal(t, txidem.Processed.String(), outcome.String())
	requireOneEffect(t, pool, id)
}
