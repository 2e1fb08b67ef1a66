package integration

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// counted counts the attempts to connect.
func counted(n *atomic.Int64) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) {
		c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
			n.Add(1)
			return nil
		}
	}
}

// A database that lets nobody in for a while (SQLSTATE 55000) is waited for.
func TestDatabaseThatTakesNoConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin, err := pgx.Connect(t.Context(), w.db.Server().DSN())
	require.NoError(t, err)
	defer admin.Close(context.WithoutCancel(t.Context()))
	allow := func(yes string) {
		_, err := admin.Exec(t.Context(), `ALTER DATABASE `+pgx.Identifier{w.db.Name()}.Sanitize()+` ALLOW_CONNECTIONS `+yes)
		require.NoError(t, err)
	}
	var tries atomic.Int64
	g := newGuard(t, w.db.Pool(t, counted(&tries)), &txidem.Config{Consumer: consumer})
	allow("false")
	before := tries.Load()
	done := make(chan error, 1)
	go func() {
		_, err := g.Process(t.Context(), "m", w.ok)
		done <- err
	}()
	require.Eventually(t, func() bool { return tries.Load() >= before+3 }, stateLimit, time.Millisecond, "no further attempts")
	allow("true")
	require.NoError(t, <-done)
	w.requireCalls(1)
	w.requireEffects(1)
}

// What waiting does not change is not waited for.
func TestDatabaseThatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var tries atomic.Int64
	cfg := w.pool.Config()
	cfg.ConnConfig.Database = "no_such_database"
	counted(&tries)(cfg)
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	defer pool.Close()
	g := newGuard(t, pool, &txidem.Config{Consumer: consumer})
	before := tries.Load()
	_, err = g.Process(t.Context(), "m", w.ok)
	require.ErrorContains(t, err, "3D000")
	require.LessOrEqual(t, tries.Load()-before, int64(2), "one attempt, for each address of the host")
	w.requireCalls(0)
}

// After a migration of the handler's table its prepared statements do not fit any more, on every connection of the pool.
// The delivery that meets one is processed.
func TestHandlersTableIsMigrated(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"cached plan must not change result type": `ALTER TABLE biz ADD COLUMN more text`,
		"prepared statement does not exist":       `DEALLOCATE ALL`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, conns(3))
			all := func(ctx context.Context, tx pgx.Tx) error {
				w.calls.Add(1)
				rows, err := tx.Query(ctx, `INSERT INTO biz (v) VALUES ($1) RETURNING *`, "ok")
				if err != nil {
					return err
				}
				rows.Close()
				return rows.Err()
			}
			queued := func(_ context.Context, b *pgx.Batch) error {
				w.calls.Add(1)
				b.Queue(`INSERT INTO biz (v) VALUES ($1) RETURNING *`, "ok")
				return nil
			}
			conns := w.onEveryConnection(func(c *pgxpool.Conn) {
				_, err := c.Exec(t.Context(), `INSERT INTO biz (v) VALUES ($1) RETURNING *`, "ok")
				require.NoError(t, err)
			})
			w.requireOutcome(txidem.Processed, "warm", all)
			w.requirePipeline(txidem.Processed, "warm too", queued)
			w.exec(`DELETE FROM biz`)
			w.exec(`DELETE FROM txidem_messages`)
			if change == `DEALLOCATE ALL` {
				w.onEveryConnection(func(c *pgxpool.Conn) {
					_, err := c.Exec(t.Context(), change)
					require.NoError(t, err)
				})
			} else {
				w.exec(change)
			}
			w.calls.Store(0)
			w.requireOutcome(txidem.Processed, "m", all)
			require.LessOrEqual(t, w.calls.Load(), int64(2))
			for range conns {
				w.requirePipeline(txidem.Processed, uuid(), queued)
			}
			w.requireEffects(1 + conns)
		})
	}
}

// onEveryConnection calls fn with every connection that the pool can have, and returns how many these are.
func (w *world) onEveryConnection(fn func(*pgxpool.Conn)) int {
	w.t.Helper()
	n := int(w.pool.Config().MaxConns)
	for range n {
		c, err := w.pool.Acquire(w.t.Context())
		require.NoError(w.t, err)
		defer c.Release()
		fn(c)
	}
	return n
}
