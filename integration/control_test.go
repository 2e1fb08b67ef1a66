package integration

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// careless hides the error of a raw statement, as a careless handler does.
func careless(sql string) txidem.Handler {
	return func(ctx context.Context, tx pgx.Tx) error {
		_, _ = tx.Exec(ctx, sql)
		return nil
	}
}

// A statement that begins with transaction control is refused before it is sent, wherever it is given, and the delivery is
// an error even when the handler hides the refusal.
func TestTransactionControlIsRefused(t *testing.T) {
	t.Parallel()
	ways := map[string]func(sql string) txidem.Handler{
		"Exec": careless,
		"Query": func(sql string) txidem.Handler {
			return func(ctx context.Context, tx pgx.Tx) error {
				rows, err := tx.Query(ctx, sql)
				require.Error(t, err)
				rows.Close()
				return nil
			}
		},
		"QueryRow": func(sql string) txidem.Handler {
			return func(ctx context.Context, tx pgx.Tx) error {
				require.ErrorIs(t, tx.QueryRow(ctx, sql).Scan(), txidem.ErrTxControl)
				return nil
			}
		},
		"Prepare": func(sql string) txidem.Handler {
			return func(ctx context.Context, tx pgx.Tx) error {
				_, _ = tx.Prepare(ctx, "p", sql)
				return nil
			}
		},
		"batch": func(sql string) txidem.Handler {
			return func(ctx context.Context, tx pgx.Tx) error {
				b := &pgx.Batch{}
				b.Queue(`INSERT INTO biz (v) VALUES ('batch')`)
				b.Queue(sql)
				require.ErrorIs(t, tx.SendBatch(ctx, b).Close(), txidem.ErrTxControl)
				return nil
			}
		},
		"nested": func(sql string) txidem.Handler {
			return func(ctx context.Context, tx pgx.Tx) error {
				sp, err := tx.Begin(ctx)
				require.NoError(t, err)
				return careless(sql)(ctx, sp)
			}
		},
	}
	w := newWorld(t)
	for name, way := range ways {
		for _, sql := range []string{
			"begin", "COMMIT", "end", "rollback", "abort", "prepare transaction 'x'", "/* a */ -- b\n commit", ";commit",
		} {
			_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
				require.NoError(t, w.ok(ctx, tx))
				return way(sql)(ctx, tx)
			})
			require.ErrorIs(t, err, txidem.ErrTxControl, "%s of %s", name, sql)
			require.False(t, txidem.Retryable(err), "%s of %s", name, sql)
		}
	}
	w.requireEffects(0)
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireEffects(1)
}

// Transaction control that gets through to the server, inside a longer text or by Conn: the delivery is an error, and there
// are as many records as effects.
func TestTransactionControlThatGetsThroughIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, sql := range []string{
		"rollback", "rollback; begin", "rollback and chain", "commit", "commit; begin", "commit and chain", "abort",
		"rollback; begin; set local txidem.other = 'x'", "prepare transaction 'txidem_test'",
	} {
		for way, through := range map[string]txidem.Handler{
			"through Conn": func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Conn().Exec(ctx, sql)
				return err
			},
			"in a string": careless("select 1; " + sql),
		} {
			_, err := w.guard.Process(t.Context(), sql+way, func(ctx context.Context, tx pgx.Tx) error {
				require.NoError(t, w.ok(ctx, tx))
				return through(ctx, tx)
			})
			require.Error(t, err, "%s %s", sql, way)
			if w.count(`SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()`) > 0 {
				w.exec(`ROLLBACK PREPARED 'txidem_test'`) // where the server allows them
			}
			w.requireAsManyRecordsAsEffects()
		}
	}
	w.db.Invariant(t)
}

// Work after the hidden end of the transaction is in another transaction, and is not committed by us.
func TestWorkAfterTheHiddenEndIsNotCommitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, sql := range []string{"rollback; begin", "rollback and chain", "commit; begin", "commit and chain"} {
		_, err := w.guard.Process(t.Context(), sql, func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "select 1; "+sql); err != nil {
				return err
			}
			return w.ok(ctx, tx)
		})
		require.ErrorIs(t, err, txidem.ErrTxControl, sql)
		require.Zero(t, w.count(`SELECT count(*) FROM biz`), "the work after the end of the transaction, %s", sql)
	}
	w.db.Invariant(t)
}

func (w *world) requireAsManyRecordsAsEffects() {
	w.t.Helper()
	require.Equal(w.t, w.count(`SELECT count(*) FROM biz`), w.count(`SELECT count(*) FROM txidem_messages`))
}

// A statement after the hidden end of the transaction would be a transaction of its own: it is refused.
func TestStatementAfterTheHiddenEndIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, sql := range []string{"rollback", "commit"} {
		_, err := w.guard.Process(t.Context(), sql, func(ctx context.Context, tx pgx.Tx) error {
			require.NoError(t, careless("select 1; "+sql)(ctx, tx))
			require.ErrorIs(t, w.ok(ctx, tx), txidem.ErrTxControl)
			return nil
		})
		require.ErrorIs(t, err, txidem.ErrTxControl, sql)
		require.Zero(t, w.count(`SELECT count(*) FROM biz`), sql)
		require.Equal(t, i, w.count(`SELECT count(*) FROM txidem_messages`), "what a hidden COMMIT stored is the claim alone")
	}
	w.db.Invariant(t)
}

// A hidden COMMIT before an error that is tried again: half a handler is committed, and the delivery must not end as a
// duplicate of itself.
func TestHiddenCommitBeforeAConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, sql := range []string{"commit", "commit; begin", "commit and chain"} {
		for name, fail := range map[string]func(ctx context.Context, tx pgx.Tx) error{
			"conflict":  func(ctx context.Context, tx pgx.Tx) error { return raise(ctx, tx, "40001") },
			"own error": func(context.Context, pgx.Tx) error { return errors.New("second half") },
		} {
			outcome, err := w.guard.Process(t.Context(), sql+name, func(ctx context.Context, tx pgx.Tx) error {
				require.NoError(t, careless("select 1; "+sql)(ctx, tx))
				return fail(ctx, tx)
			})
			require.Error(t, err, "%s, %s: %v", sql, name, outcome)
		}
	}
	w.db.Invariant(t)
}

// slowArgument is an argument whose encoding waits: the statement that it belongs to is between two messages meanwhile.
type slowArgument struct{ encoding, goOn chan struct{} }

func (s slowArgument) Value() (driver.Value, error) {
	close(s.encoding)
	<-s.goOn
	return "stray", nil
}

// A goroutine that outlives its handler in the middle of a statement: the statement reaches nobody's transaction.
func TestGoroutineThatOutlivesItsHandler(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conns(1))
	arg := slowArgument{make(chan struct{}), make(chan struct{})}
	stray := make(chan error, 1)
	_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
		go func() {
			_, err := tx.Exec(context.WithoutCancel(ctx), `INSERT INTO biz (v) VALUES ($1)`, arg)
			stray <- err
		}()
		<-arg.encoding
		return nil
	})
	require.ErrorIs(t, err, txidem.ErrTxBusy)
	w.requireOutcome(txidem.Processed, "other", w.ok) // on the only place of the pool
	close(arg.goOn)
	require.Error(t, <-stray)
	w.requireEffects(1)
}

// Savepoints are no transaction control, as statements or by Begin.
func TestSavepointsAreFine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.requireOutcome(txidem.Processed, "m", func(ctx context.Context, tx pgx.Tx) error {
		for _, sql := range []string{
			"savepoint a", "insert into biz (v) values ('gone')", "rollback to a", "ROLLBACK WORK TO SAVEPOINT a", "release a",
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return w.ok(ctx, tx)
	})
	w.requireEffects(1)
}

// Several goroutines on one transaction: some statements are refused, and then none of the work is committed, although the
// handler saw no error.
func TestGoroutinesOnOneTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { _, _ = tx.Exec(ctx, `INSERT INTO biz (v) SELECT 'x' FROM pg_sleep(0.05)`) })
		}
		all.Wait()
		return nil
	})
	require.ErrorIs(t, err, txidem.ErrTxBusy)
	w.requireEffects(0)
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireEffects(1)
}

// Whatever result a handler leaves open, or begins a statement under, the delivery fails and the connection is sound.
func TestResultsLeftOpen(t *testing.T) {
	t.Parallel()
	const many = `SELECT generate_series(1, 100000)`
	w, done := newWorld(t), 0
	for name, leave := range map[string]txidem.Handler{
		"rows": func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Query(ctx, many); return err },
		"rows partly read": func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, many)
			rows.Next()
			return err
		},
		"row never read": func(ctx context.Context, tx pgx.Tx) error { tx.QueryRow(ctx, `SELECT 1`); return nil },
		"batch": func(ctx context.Context, tx pgx.Tx) error {
			b := &pgx.Batch{}
			b.Queue(`SELECT 1`)
			tx.SendBatch(ctx, b)
			return nil
		},
		"statement under open rows": func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, many)
			_, _ = tx.Exec(ctx, `INSERT INTO biz (v) VALUES ('refused')`)
			rows.Close()
			return err
		},
		"statement under an open batch": func(ctx context.Context, tx pgx.Tx) error {
			b := &pgx.Batch{}
			b.Queue(`SELECT 1`)
			br := tx.SendBatch(ctx, b)
			_, _ = tx.Exec(ctx, `INSERT INTO biz (v) VALUES ('refused')`)
			return br.Close()
		},
		"nested rows": func(ctx context.Context, tx pgx.Tx) error {
			sp, err := tx.Begin(ctx)
			require.NoError(t, err)
			_, err = sp.Query(ctx, many)
			return err
		},
	} {
		_, err := w.guard.Process(t.Context(), name, func(ctx context.Context, tx pgx.Tx) error {
			require.NoError(t, w.ok(ctx, tx))
			return leave(ctx, tx)
		})
		require.ErrorIs(t, err, txidem.ErrTxBusy, name)
		require.Equal(t, done, w.count(`SELECT count(*) FROM biz`), name)
		w.requireOutcome(txidem.Processed, name, w.ok)
		done++
	}
	w.requireEffects(done)
}

// Every way of reading rows to their end, or of failing in them, gives the transaction back.
func TestResultsReadToTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.requireOutcome(txidem.Processed, "m", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT generate_series(1, 3)`)
		require.NoError(t, err)
		n, err := pgx.CollectRows(rows, pgx.RowTo[int])
		require.NoError(t, err)
		require.Equal(t, []int{1, 2, 3}, n)

		var sum int
		rows, err = tx.Query(ctx, `SELECT generate_series(1, 3)`)
		require.NoError(t, err)
		_, err = pgx.ForEachRow(rows, []any{&n}, func() error { return nil })
		require.Error(t, err, "an int does not scan into a slice")

		rows, err = tx.Query(ctx, `SELECT generate_series(1, 3)`)
		require.NoError(t, err)
		require.True(t, rows.Next())
		require.Error(t, rows.Scan(&sum, &sum), "a failed Scan closes the rows")

		rows, err = tx.Query(ctx, `SELECT generate_series(1, 3)`)
		require.NoError(t, err)
		require.True(t, rows.Next())
		_, err = rows.Values()
		require.NoError(t, err)
		rows.Close()
		rows.Close()

		require.ErrorIs(t, tx.QueryRow(ctx, `SELECT 1 WHERE false`).Scan(&sum), pgx.ErrNoRows)
		require.NoError(t, tx.QueryRow(ctx, `SELECT 7`).Scan(&sum))
		require.Equal(t, 7, sum)

		b := &pgx.Batch{}
		b.Queue(`SELECT 8`).QueryRow(func(row pgx.Row) error { return row.Scan(&sum) })
		br := tx.SendBatch(ctx, b)
		require.NoError(t, br.Close())
		require.NoError(t, br.Close())
		require.Equal(t, 8, sum)
		return w.ok(ctx, tx)
	})
	w.requireEffects(1)
}
