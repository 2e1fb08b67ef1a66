package integration

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/migrations"
)

const replicas = 12

// Twelve replicas migrate an empty database at once. The version must be read by a snapshot that is younger
// than the lock, also where the role asks for one snapshot for the whole transaction.
func TestTwelveReplicasBoot(t *testing.T) {
	t.Parallel()
	for isolation, rounds := range map[string]int{"read committed": 30, "repeatable read": 5, "serializable": 5} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, conns(replicas+1), func(c *pgxpool.Config) {
				c.ConnConfig.RuntimeParams["default_transaction_isolation"] = isolation
			})
			dbs := w.acquire(replicas)
			for range rounds {
				w.exec(`DROP SCHEMA public CASCADE`)
				w.exec(`CREATE SCHEMA public`)
				w.requireOneMigrates(dbs)
			}
			require.Zero(t, w.advisoryLocks())
		})
	}
}

// acquire takes n connections for the rest of the test, so that none of them has to be made during a race.
func (w *world) acquire(n int) []migrations.DB {
	w.t.Helper()
	dbs := make([]migrations.DB, n)
	for i := range dbs {
		conn, err := w.pool.Acquire(w.t.Context())
		require.NoError(w.t, err)
		w.t.Cleanup(conn.Release)
		dbs[i] = conn
	}
	return dbs
}

func (w *world) requireOneMigrates(dbs []migrations.DB) {
	w.t.Helper()
	newest := newestVersion(w.t)
	applied := 0
	for i, result := range migrateAtOnce(w.t.Context(), dbs) {
		require.NoError(w.t, result.err, "replica %d", i)
		require.Equal(w.t, newest, result.report.To)
		if len(result.report.Applied) > 0 {
			applied++
		}
	}
	require.Equal(w.t, 1, applied, "replicas that report to have migrated")
	require.Equal(w.t, newest, w.count(`SELECT count(*) FROM txidem_messages_migrations`), "version rows")
}

type migration struct {
	report migrations.Report
	err    error
}

// migrateAtOnce lets every connection go at the same moment.
func migrateAtOnce(ctx context.Context, dbs []migrations.DB) []migration {
	results := make([]migration, len(dbs))
	start := make(chan struct{})
	var all sync.WaitGroup
	for i, db := range dbs {
		all.Go(func() {
			<-start
			results[i].report, results[i].err = migrations.Apply(ctx, db, nil)
		})
	}
	close(start)
	all.Wait()
	return results
}
