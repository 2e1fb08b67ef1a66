package integration

import (
	"context"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// txMethods says for every method of pgx.Tx how it is used, and what a transaction that was handed to a handler makes of
// it. A method that pgx adds is missing here, and the test fails until somebody has thought about it.
var txMethods = map[string]func(t *testing.T, tx pgx.Tx) error{
	"Begin": func(t *testing.T, tx pgx.Tx) error {
		sp, err := tx.Begin(t.Context())
		if err != nil {
			return err
		}
		return sp.Commit(t.Context())
	},
	"Commit":   func(t *testing.T, tx pgx.Tx) error { return tx.Commit(t.Context()) },
	"Rollback": func(t *testing.T, tx pgx.Tx) error { return tx.Rollback(t.Context()) },
	"CopyFrom": func(t *testing.T, tx pgx.Tx) error {
		_, err := tx.CopyFrom(t.Context(), pgx.Identifier{"biz"}, []string{"v"}, pgx.CopyFromRows([][]any{{"copied"}}))
		return err
	},
	"SendBatch": func(t *testing.T, tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(`SELECT 1`)
		return tx.SendBatch(t.Context(), b).Close()
	},
	"LargeObjects": func(t *testing.T, tx pgx.Tx) error {
		lo := tx.LargeObjects()
		_, err := lo.Create(t.Context(), 0)
		return err
	},
	"Prepare": func(t *testing.T, tx pgx.Tx) error {
		_, err := tx.Prepare(t.Context(), "", `SELECT 1`)
		return err
	},
	"Exec": func(t *testing.T, tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SELECT 1`)
		return err
	},
	"Query": func(t *testing.T, tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT 1`)
		if err != nil {
			require.Error(t, rows.Err(), "rows say it too, for callers that look there")
			return err
		}
		_, err = pgx.CollectRows(rows, pgx.RowTo[int])
		return err
	},
	"QueryRow": func(t *testing.T, tx pgx.Tx) error {
		var n int
		return tx.QueryRow(t.Context(), `SELECT 1`).Scan(&n)
	},
	"Conn": func(t *testing.T, tx pgx.Tx) error {
		require.NotNil(t, tx.Conn())
		return nil
	},
}

// eachTx hands the transaction, a savepoint in it and a savepoint in that to fn. Only the savepoints may be ended.
func eachTx(t *testing.T, tx pgx.Tx, fn func(level string, mayEnd bool, tx pgx.Tx)) {
	t.Helper()
	fn("handed", false, tx)
	for _, level := range []string{"savepoint", "savepoint in a savepoint"} {
		var err error
		tx, err = tx.Begin(t.Context())
		require.NoError(t, err)
		fn(level, true, tx)
	}
}

// Every method of pgx.Tx works on what the handler is handed, and on the savepoints made from it.
func TestHandedTxHasEveryMethod(t *testing.T) {
	t.Parallel()
	iface := reflect.TypeFor[pgx.Tx]()
	require.Equal(t, iface.NumMethod(), len(txMethods), "pgx.Tx has changed")
	w := newWorld(t)
	for i := range iface.NumMethod() {
		name := iface.Method(i).Name
		use, known := txMethods[name]
		require.True(t, known, "pgx.Tx has a new method, %s: decide what the handed transaction makes of it", name)
		ends := name == "Commit" || name == "Rollback"
		_, err := w.guard.Process(t.Context(), name, func(_ context.Context, tx pgx.Tx) error {
			eachTx(t, tx, func(level string, mayEnd bool, tx pgx.Tx) {
				switch {
				case ends && mayEnd: // ending an outer savepoint before the inner one is for the savepoint tests
				case ends:
					require.ErrorIs(t, use(t, tx), txidem.ErrTxControl, "%s of %s", name, level)
				default:
					require.NoError(t, use(t, tx), "%s of %s", name, level)
				}
			})
			return nil
		})
		if ends {
			require.ErrorIs(t, err, txidem.ErrTxControl, name)
		} else {
			require.NoError(t, err, name)
		}
	}
	w.db.Invariant(t)
}

// A handed transaction that outlives its handler is closed for everything, its savepoints too: the connection may be
// somebody else's by then.
func TestHandedTxIsClosedAfterTheHandler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	kept := map[string]pgx.Tx{}
	w.requireOutcome(txidem.Processed, "m", func(_ context.Context, tx pgx.Tx) error {
		eachTx(t, tx, func(level string, _ bool, tx pgx.Tx) { kept[level] = tx })
		return nil
	})
	for level, tx := range kept {
		for name, use := range txMethods {
			switch {
			case name == "Conn" || name == "LargeObjects":
				continue // they are no statements; what they lead to is the connection's own, as in pgx
			case level == "handed" && (name == "Commit" || name == "Rollback"):
				require.ErrorIs(t, use(t, tx), txidem.ErrTxControl, "%s of %s", name, level)
			default:
				require.ErrorIs(t, use(t, tx), pgx.ErrTxClosed, "%s of %s", name, level)
			}
		}
	}
	w.db.Invariant(t)
}

// Commit and Rollback are refused, and the delivery is an error even when the handler hides the refusal.
func TestHandlerMustNotEndTheTransaction(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(context.Context, pgx.Tx) error{
		"Commit":            func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) },
		"Rollback":          func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) },
		"hidden Commit":     func(ctx context.Context, tx pgx.Tx) error { _ = tx.Commit(ctx); return nil },
		"hidden Rollback":   func(ctx context.Context, tx pgx.Tx) error { _ = tx.Rollback(ctx); return nil },
		"deferred Rollback": func(ctx context.Context, tx pgx.Tx) error { defer func() { _ = tx.Rollback(ctx) }(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
				require.NoError(t, w.ok(ctx, tx))
				return end(ctx, tx)
			})
			require.ErrorIs(t, err, txidem.ErrTxControl)
			require.False(t, txidem.Retryable(err))
			w.requireEffects(0)
			w.requireOutcome(txidem.Processed, "m", w.ok)
			w.requireEffects(1)
		})
	}
}

// The handler's own error stays first in the chain when it also tried to end the transaction.
func TestHandlersErrorComesFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
		_ = tx.Rollback(ctx)
		return context.DeadlineExceeded
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, txidem.ErrTxControl)
	require.Regexp(t, "^context deadline exceeded", err.Error())
	w.requireEffects(0)
}

// A raw statement that ends the transaction leaves nothing to commit: an error, never an ack.
func TestTransactionEndedByAStatement(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{"rollback", "commit"} {
		t.Run(sql, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Conn().Exec(ctx, sql)
				return err
			})
			require.ErrorIs(t, err, txidem.ErrTxControl)
			w.db.Invariant(t)
		})
	}
}

// Rows that are still open when the handler returns: nothing is committed, and the connection is not used again.
func TestRowsLeftOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
		require.NoError(t, w.ok(ctx, tx))
		rows, err := tx.Query(ctx, `SELECT generate_series(1, 100000)`)
		require.NoError(t, err)
		require.True(t, rows.Next())
		return nil
	})
	require.ErrorIs(t, err, txidem.ErrTxBusy)
	w.requireEffects(0)
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireEffects(1)
}
