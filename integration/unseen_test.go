package integration

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// ended is a name that the pool has given to a prepared statement which ends the transaction.
const ended = "finish the work"

func named(name, sql string) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) {
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Prepare(ctx, name, sql)
			return err
		}
	}
}

type rewriteTo string

func (r rewriteTo) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return string(r), nil, nil
}

// COMMIT asks for the mark of the transaction only where the handler may have ended it unseen. These are the ways in which
// it can. The transaction that is open at the end is another one, so that nothing but the mark tells them apart.
func TestEveryUnseenWayMakesCommitAsk(t *testing.T) {
	t.Parallel()
	const sql = "rollback; begin"
	through := func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, sql)
		return err
	}
	for name, h := range map[string]txidem.Handler{
		"Conn": func(ctx context.Context, tx pgx.Tx) error { return through(ctx, tx.Conn()) },
		"the Conn of rows": func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, "select 1")
			if err != nil {
				return err
			}
			rows.Close()
			return through(ctx, rows.Conn())
		},
		"the Conn of a batch's rows": func(ctx context.Context, tx pgx.Tx) error {
			b := &pgx.Batch{}
			b.Queue("select 1")
			br := tx.SendBatch(ctx, b)
			rows, err := br.Query()
			if err != nil {
				return err
			}
			rows.Close()
			if err := br.Close(); err != nil {
				return err
			}
			return through(ctx, rows.Conn())
		},
		"the Conn in a callback": func(ctx context.Context, tx pgx.Tx) error {
			b := &pgx.Batch{}
			var c *pgx.Conn
			b.Queue("select 1").Query(func(rows pgx.Rows) error { c = rows.Conn(); return nil })
			if err := tx.SendBatch(ctx, b).Close(); err != nil {
				return err
			}
			return through(ctx, c)
		},
		"a RowScanner": func(ctx context.Context, tx pgx.Tx) error {
			k := &connKeeper{}
			if err := tx.QueryRow(ctx, "select 1").Scan(k); err != nil {
				return err
			}
			return through(ctx, k.conn)
		},
		"a string": careless("select 1; " + sql),
		"a savepoint's string": func(ctx context.Context, tx pgx.Tx) error {
			nested, err := tx.Begin(ctx)
			if err != nil {
				return err
			}
			return careless("select 1; "+sql)(ctx, nested)
		},
		"a rewriter": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "select 1", pgx.QueryExecModeSimpleProtocol, rewriteTo(sql))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
				require.NoError(t, w.ok(ctx, tx))
				return h(ctx, tx)
			})
			require.ErrorIs(t, err, txidem.ErrTxControl)
			w.requireEffects(0)
		})
	}
}

// A prepared statement may have any name.
func TestPreparedStatementThatEndsTheTransaction(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{"commit", "rollback"} {
		w := newWorld(t, named(ended, sql))
		_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
			require.NoError(t, w.ok(ctx, tx))
			return careless(ended)(ctx, tx)
		})
		require.ErrorIs(t, err, txidem.ErrTxControl, sql)
		w.requireAsManyRecordsAsEffects()
		_, err = w.guard.Pipeline(t.Context(), "n", func(_ context.Context, b *pgx.Batch) error {
			b.Queue(`INSERT INTO biz (v) VALUES ('ok')`)
			b.Queue(ended)
			return nil
		})
		require.ErrorIs(t, err, txidem.ErrTxControl, sql)
		w.requireAsManyRecordsAsEffects()
	}
}

// What the library itself sends is never taken for a prepared statement, whatever somebody has called one.
func TestPreparedStatementsWithTheNamesOfControl(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"begin", "commit", "rollback"} {
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
			w := newWorld(t, execMode(mode), named(name, "SELECT 1"))
			w.requireOutcome(txidem.Processed, "m", w.ok)
			w.requireOutcome(txidem.Duplicate, "m", w.ok)
			w.requirePipeline(txidem.Processed, "n", w.queueOne)
			w.requirePipeline(txidem.Duplicate, "n", w.queueOne)
			require.Equal(t, []string{"duplicate", "processed"}, w.deliverBatch(w.insertAll, []string{"n", "o"}))
			w.requireEffects(3)
		}
	}
}

// connKeeper keeps the connection that a RowScanner can get from the rows.
type connKeeper struct{ conn *pgx.Conn }

func (k *connKeeper) ScanRow(rows pgx.Rows) error {
	k.conn = rows.Conn()
	return nil
}
