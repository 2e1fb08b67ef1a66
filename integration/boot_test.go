package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/pgbouncer"
	"github.com/txidem/txidem-go/migrations"
	"github.com/txidem/txidem-go/txidem"
)

const replicas = 12

// bootLimit is when a boot that has not come to its end hangs. Reaching it fails the test.
const bootLimit = time.Minute

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

// Twelve replicas boot at once through PgBouncer in transaction mode, each with a pool of its own: they migrate, check and
// process. The pooler has fewer sessions of the server than there are replicas, so that they wait for each other there too.
// One of them migrates, none hangs, and nothing is left behind.
func TestTwelveReplicasBootThroughPgBouncer(t *testing.T) {
	t.Parallel()
	if !pgbouncer.Installed() {
		t.Skip("no pgbouncer on the PATH: install it (Debian: apt-get install pgbouncer)")
	}
	inModes(t, []pgx.QueryExecMode{
		pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	}, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t)
		bouncer := pgbouncer.Start(t, w.db.DSN(), "default_pool_size = 3")
		w.exec(`DROP TABLE txidem_messages, txidem_messages_migrations`)
		var pools []*pgxpool.Pool
		for range replicas {
			pools = append(pools, w.db.Pool(t, conns(2), mode, func(c *pgxpool.Config) { bouncer.Through(c.ConnConfig) }))
		}
		w.requireOneBoots(pools)
		require.Zero(t, w.advisoryLocks())
		w.requireEffects(replicas + 1)
	})
}

// requireOneBoots boots a replica over each pool, and asserts that one of them has migrated, and that the message that all
// of them deliver was processed once.
func (w *world) requireOneBoots(pools []*pgxpool.Pool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), bootLimit)
	defer cancel()
	booted := make([]replica, len(pools))
	start := make(chan struct{})
	var all sync.WaitGroup
	for i, pool := range pools {
		all.Go(func() {
			<-start
			booted[i].err = booted[i].boot(ctx, pool, fmt.Sprint("own ", i))
		})
	}
	close(start)
	all.Wait()
	applied, processed := 0, 0
	for i, r := range booted {
		require.NoError(w.t, r.err, "replica %d", i)
		applied += len(r.report.Applied)
		if r.shared == txidem.Processed {
			processed++
		}
	}
	require.Equal(w.t, newestVersion(w.t), applied, "steps taken by all replicas together")
	require.Equal(w.t, applied, w.count(`SELECT count(*) FROM txidem_messages_migrations`), "version rows")
	require.Equal(w.t, 1, processed, "replicas that processed the message of all")
}

// replica is what one replica did when it started.
type replica struct {
	report migrations.Report
	shared txidem.Outcome // of the message that all replicas deliver
	err    error
}

// boot does what a program does: it migrates, checks, and delivers its first messages.
func (r *replica) boot(ctx context.Context, pool *pgxpool.Pool, own string) (err error) {
	if r.report, err = migrations.Apply(ctx, pool, nil); err != nil {
		return err
	}
	g, err := txidem.New(pool, &txidem.Config{Consumer: consumer})
	if err != nil {
		return err
	}
	if err := g.Check(ctx); err != nil {
		return err
	}
	effect := func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO biz (v) VALUES ($1)`, own)
		return err
	}
	if r.shared, err = g.Process(ctx, "shared", effect); err != nil {
		return err
	}
	_, err = g.Process(ctx, own, effect)
	return err
}
