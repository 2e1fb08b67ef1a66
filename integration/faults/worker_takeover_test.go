package faults

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/testdb"
	"github.com/txidem/txidem-go/txidem"
)

// A worker is killed inside its handler. A delivery that waited for it meanwhile runs, and so does one that comes
// afterwards: the end of the connection has freed the message. The wait would last an hour otherwise.
func TestKilledWorkerFreesItsMessage(t *testing.T) {
	t.Parallel()
	for _, point := range []string{pointHandler, pointBeforeCommit} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			db := testdb.New(t)
			prepare(t, db.DSN())
			pool := db.Pool(t)
			g := newGuard(t, pool, func(c *txidem.Config) { c.InFlightWait = time.Hour })

			for _, id := range []string{"waiting", "afterwards"} {
				p := startWorker(t, db.DSN(), modeGuarded)
				require.NoError(t, p.deliver(id, point))
				require.True(t, p.listen().reached)
				if id == "waiting" {
					require.Equal(t, txidem.Processed, takeOver(t, g, connect(t, db.DSN()), p, id))
				} else {
					p.kill()
					outcome, err := bounded(t, g, id)
					require.NoError(t, err)
					require.Equal(t, txidem.Processed, outcome)
				}
				requireOneEffect(t, pool, id)
			}
			report.injected(transactional, workerKilled, atHandler, 2)
			db.Invariant(t)
		})
	}
}

// takeOver delivers a message that a worker holds, kills the worker once the delivery waits for it, and returns what
// became of the delivery.
func takeOver(t *testing.T, g *txidem.Guard, side *pgx.Conn, p *workerProcess, id string) txidem.Outcome {
	t.Helper()
	var outcome txidem.Outcome
	done := make(chan error, 1)
	go func() {
		var err error
		outcome, err = bounded(t, g, id)
		done <- err
	}()
	waitFor(t, side, `SELECT count(*) = 1 FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	p.kill()
	require.NoError(t, <-done)
	return outcome
}

// bounded delivers a message with the ordinary handler, and fails when that takes as long as a state may take to come.
func bounded(t *testing.T, g *txidem.Guard, id string) (txidem.Outcome, error) {
	ctx, cancel := context.WithTimeout(t.Context(), crashStateLimit)
	defer cancel()
	return g.Process(ctx, id, transferOf(id))
}
