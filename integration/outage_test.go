package integration

import (
	"context"
	"fmt"
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

// A database that lets nobody in for a while (SQLSTATE 55000) is waited for, by every way in that takes a connection.
func TestDatabaseThatTakesNoConnections(t *testing.T) {
	t.Parallel()
	for name, deliver := range map[string]func(w *world, g *txidem.Guard) error{
		"Process": func(w *world, g *txidem.Guard) error { _, err := g.Process(w.t.Context(), "m", w.ok); return err },
		"Pipeline": func(w *world, g *txidem.Guard) error {
			_, err := g.Pipeline(w.t.Context(), "m", w.queueOne)
			return err
		},
		"WrapBatch": func(w *world, g *txidem.Guard) error {
			return txidem.WrapBatch(g, itself, w.insertAll)(w.t.Context(), []string{"m"})[0].Err
		},
		"Remember": func(w *world, g *txidem.Guard) error { return g.Remember(w.t.Context(), "m") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var tries atomic.Int64
			g := newGuard(t, w.db.Pool(t, counted(&tries)), &txidem.Config{Consumer: consumer})
			w.allowConnections(false)
			before := tries.Load()
			done := make(chan error, 1)
			go func() { done <- deliver(w, g) }()
			triedAgain := func() bool { return tries.Load() >= before+3 }
			require.Eventually(t, triedAgain, stateLimit, time.Millisecond, "no further attempts")
			w.allowConnections(true)
			require.NoError(t, <-done)
			w.requireSeen(true, "m")
			require.Equal(t, int(w.calls.Load()), w.count(`SELECT count(*) FROM biz`), "an effect for each call")
		})
	}
}

// allowConnections lets nobody into the database, or everybody again.
func (w *world) allowConnections(yes bool) {
	w.t.Helper()
	admin, err := pgx.Connect(w.t.Context(), w.db.Server().DSN())
	require.NoError(w.t, err)
	defer admin.Close(context.WithoutCancel(w.t.Context()))
	name := pgx.Identifier{w.db.Name()}.Sanitize()
	_, err = admin.Exec(w.t.Context(), fmt.Sprintf(`ALTER DATABASE %s ALLOW_CONNECTIONS %t`, name, yes))
	require.NoError(w.t, err)
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

// insertAndReturn is a statement that does not fit any more when its table was altered.
const insertAndReturn = `INSERT INTO biz (v) VALUES ($1) RETURNING *`

// After a migration of the handler's table its prepared statements do not fit any more, on every connection of the pool.
// The delivery that meets one is processed.
func TestHandlersTableIsMigrated(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"cached plan must not change result type": `ALTER TABLE biz ADD COLUMN IF NOT EXISTS more text`,
		"prepared statement does not exist":       `DEALLOCATE ALL`,
	} {
		for way, deliver := range map[string]func(w *world, id string) error{
			"Process": func(w *world, id string) error {
				_, err := w.guard.Process(w.t.Context(), id, w.insertAndReturn)
				return err
			},
			"Pipeline": func(w *world, id string) error {
				_, err := w.guard.Pipeline(w.t.Context(), id, func(_ context.Context, b *pgx.Batch) error {
					w.calls.Add(1)
					b.Queue(insertAndReturn, "ok")
					return nil
				})
				return err
			},
			"ProcessBatch": func(w *world, id string) error {
				return w.guard.ProcessBatch(w.t.Context(), []string{id}, func(ctx context.Context, tx pgx.Tx, _ []int) error {
					return w.insertAndReturn(ctx, tx)
				})[0].Err
			},
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, conns(3))
				require.NoError(t, deliver(w, "warm"))
				w.onEveryConnection(func(c *pgxpool.Conn) {
					_, err := c.Exec(t.Context(), insertAndReturn, "ok")
					require.NoError(t, err)
				})
				w.onEveryConnection(func(c *pgxpool.Conn) {
					_, err := c.Exec(t.Context(), change)
					require.NoError(t, err)
				})
				w.exec(`DELETE FROM biz`)
				w.exec(`DELETE FROM txidem_messages`)
				w.calls.Store(0)
				require.NoError(t, deliver(w, "m"))
				require.LessOrEqual(t, w.calls.Load(), int64(2), "one that meets it, and one that does not")
				w.requireEffects(1)
			})
		}
	}
}

func (w *world) insertAndReturn(ctx context.Context, tx pgx.Tx) error {
	w.calls.Add(1)
	_, err := tx.Exec(ctx, insertAndReturn, "ok")
	return err
}

// onEveryConnection calls fn with every connection that the pool can have.
func (w *world) onEveryConnection(fn func(*pgxpool.Conn)) {
	w.t.Helper()
	for range w.pool.Config().MaxConns {
		c, err := w.pool.Acquire(w.t.Context())
		require.NoError(w.t, err)
		defer c.Release()
		fn(c)
	}
}
