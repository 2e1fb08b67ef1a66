package integration

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// untilEnded waits until the server has ended the session of the transaction.
func (w *world) untilEnded(tx pgx.Tx) {
	w.t.Helper()
	w.waitFor(`SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, tx.Conn().PgConn().PID())
}

// A handler that is slower than a limit of the server's runs once, since it would be as slow again, and the error names the
// limit; whether the handler notices, hides what it noticed, or leaves it to COMMIT.
func TestHandlerSlowerThanALimit(t *testing.T) {
	t.Parallel()
	const short = 200 * time.Millisecond
	for limit, tc := range map[string]struct {
		change any
		names  string
	}{
		"IdleLimit": {func(c *txidem.Config) { c.IdleLimit = short }, "IdleLimit"},
		"idle_in_transaction_session_timeout": {
			sessionSetting("idle_in_transaction_session_timeout", "200ms"),
			"idle_in_transaction_session_timeout",
		},
		"transaction_timeout": {sessionSetting("transaction_timeout", "200ms"), "transaction_timeout"},
	} {
		for end, after := range map[string]func(context.Context, pgx.Tx) error{
			"returns its error": func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, `SELECT 1`); return err },
			"hides its error":   func(ctx context.Context, tx pgx.Tx) error { _, _ = tx.Exec(ctx, `SELECT 1`); return nil },
			"leaves it":         func(context.Context, pgx.Tx) error { return nil },
		} {
			t.Run(limit+"/"+end, func(t *testing.T) {
				t.Parallel()
				if limit == "transaction_timeout" {
					requireVersion(t, 170000)
				}
				w := newWorld(t, tc.change)
				_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
					if err := w.ok(ctx, tx); err != nil {
						return err
					}
					w.untilEnded(tx)
					return after(ctx, tx)
				})
				require.ErrorContains(t, err, tc.names)
				require.True(t, txidem.Retryable(err))
				w.requireCalls(1)
				w.requireEffects(0)
			})
		}
	}
}

// A batch and a pipeline with callbacks keep a transaction open for their handlers as Process does.
func TestOtherHandlersSlowerThanIdleLimit(t *testing.T) {
	t.Parallel()
	for name, deliver := range map[string]func(w *world) error{
		"WrapBatch": func(w *world) error {
			return txidem.WrapBatch(w.guard, itself, func(ctx context.Context, tx pgx.Tx, fresh []string) error {
				if err := w.insertAll(ctx, tx, fresh); err != nil {
					return err
				}
				w.untilEnded(tx)
				return nil
			})(w.t.Context(), []string{"m"})[0].Err
		},
		"Pipeline": func(w *world) error {
			_, err := w.guard.Pipeline(w.t.Context(), "m", func(_ context.Context, b *pgx.Batch) error {
				w.calls.Add(1)
				b.Queue(`INSERT INTO biz (v) VALUES ('ok')`).Exec(func(pgconn.CommandTag) error {
					w.waitFor(`SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database()`)
					return nil
				})
				return nil
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, conns(1), func(c *txidem.Config) { c.IdleLimit = 200 * time.Millisecond })
			require.ErrorContains(t, deliver(w), "IdleLimit")
			w.requireCalls(1)
			w.requireEffects(0)
		})
	}
}

// requireVersion skips on a server that is too old for what is tested.
func requireVersion(t *testing.T, atLeast int) {
	t.Helper()
	w := newWorld(t)
	var version int
	require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT current_setting('server_version_num')::int4`).Scan(&version))
	if version < atLeast {
		t.Skipf("the server is version %d: this needs %d", version, atLeast)
	}
}

// shortTimeout is a statement_timeout that ends a wait, and nothing else on a machine that is busy.
const shortTimeout = "1s"

// A statement_timeout that is shorter than the wait ends it: the copy is in flight all the same, by every way of claiming.
func TestStatementTimeoutShorterThanTheWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conns(8))
	g := newGuard(t, w.db.Pool(t, sessionSetting("statement_timeout", shortTimeout)), &txidem.Config{Consumer: consumer})
	db := w.openSQL(func(t *testing.T, cfg *pgx.ConnConfig) *sql.DB {
		cfg.RuntimeParams["statement_timeout"] = shortTimeout
		return sqlDrivers["pgx"](t, cfg)
	})
	bySQL, err := txidem.NewSQL(db, &txidem.Config{Consumer: consumer})
	require.NoError(t, err)
	held := w.hold(w.guard, "m")
	for name, deliver := range map[string]func() error{
		"Process":  func() error { _, err := g.Process(t.Context(), "m", w.ok); return err },
		"Pipeline": func() error { _, err := g.Pipeline(t.Context(), "m", w.queueOne); return err },
		"callbacks": func() error {
			_, err := g.Pipeline(t.Context(), "m", func(_ context.Context, b *pgx.Batch) error {
				b.Queue(`SELECT 1`).QueryRow(func(row pgx.Row) error { return row.Scan(new(int)) })
				return nil
			})
			return err
		},
		"WrapBatch": func() error {
			return txidem.WrapBatch(g, itself, w.insertAll)(t.Context(), []string{"m"})[0].Err
		},
		"ClaimTx": func() error {
			return pgx.BeginFunc(t.Context(), w.db.Pool(t, sessionSetting("statement_timeout", shortTimeout)), func(tx pgx.Tx) error {
				_, err := g.ClaimTx(t.Context(), tx, "m")
				return err
			})
		},
		"ClaimSQL": func() error {
			return openSQL(t, db)(t.Context(), func(tx sqlTx) error {
				_, err := bySQL.ClaimSQL(t.Context(), tx, "m")
				return err
			})
		},
		"Remember, database/sql": func() error { return bySQL.Remember(t.Context(), "m") },
		"Forget, database/sql":   func() error { return bySQL.Forget(t.Context(), "m") },
		"Remember":               func() error { return g.Remember(t.Context(), "m") },
		"Forget":                 func() error { return g.Forget(t.Context(), "m") },
	} {
		err := deliver()
		require.ErrorIs(t, err, txidem.ErrInFlight, name)
		require.ErrorContains(t, err, "statement_timeout", name)
		require.Positive(t, txidem.RetryAfter(err), name)
	}
	held.end(nil)
	require.NoError(t, held.err)
	w.requireEffects(1)
}

// A batch of many, one of which is in flight: the others are processed.
func TestStatementTimeoutInABatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conns(8))
	g := newGuard(t, w.db.Pool(t, sessionSetting("statement_timeout", shortTimeout)), &txidem.Config{Consumer: consumer})
	held := w.hold(w.guard, "b")
	results := txidem.WrapBatch(g, itself, w.insertAll)(t.Context(), []string{"a", "b", "c"})
	require.NoError(t, results[0].Err)
	require.ErrorIs(t, results[1].Err, txidem.ErrInFlight)
	require.NoError(t, results[2].Err)
	held.end(nil)
	w.requireEffects(3)
}
