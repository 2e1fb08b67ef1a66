package txidem

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// handedTx is the transaction as the handler gets it: a pgx.Tx whose end belongs to txidem. It embeds no pgx.Tx, so that a
// method that pgx adds is a compile error here and not a hole.
type handedTx struct {
	tx    pgx.Tx
	state *handover
}

var _ pgx.Tx = (*handedTx)(nil)

// hand makes the transaction ready for a handler.
func hand(t *transaction) *handedTx {
	h := &struct {
		handedTx
		handover
	}{} // one allocation
	h.conn = t.conn.Conn()
	h.handedTx = handedTx{tx: t.tx, state: &h.handover}
	return &h.handedTx
}

// Commit refuses: the transaction is committed when the handler returns nil.
func (h *handedTx) Commit(context.Context) error { return h.state.refuseEnd("Commit") }

// Rollback refuses: the transaction is rolled back when the handler returns an error.
func (h *handedTx) Rollback(context.Context) error { return h.state.refuseEnd("Rollback") }

// Begin makes a savepoint.
func (h *handedTx) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := h.state.enter(); err != nil {
		return nil, err
	}
	nested, err := h.tx.Begin(ctx)
	h.state.leave(err)
	if err != nil {
		return nil, err
	}
	return &nestedTx{handedTx{tx: nested, state: h.state}}, nil
}

func (h *handedTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, src pgx.CopyFromSource) (int64, error) {
	if err := h.state.enter(); err != nil {
		return 0, err
	}
	n, err := h.tx.CopyFrom(ctx, table, columns, src)
	h.state.leave(err)
	return n, err
}

func (h *handedTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := h.state.enterBatch(b); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return &handedBatch{BatchResults: h.tx.SendBatch(ctx, b), state: h.state}
}

// LargeObjects is pgx's own: what is done through it is not watched.
func (h *handedTx) LargeObjects() pgx.LargeObjects { return h.tx.LargeObjects() }

func (h *handedTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := h.state.enterStatement(sql, nil); err != nil {
		return nil, err
	}
	sd, err := h.tx.Prepare(ctx, name, sql)
	h.state.leave(err)
	return sd, err
}

func (h *handedTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := h.state.enterStatement(sql, args); err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := h.tx.Exec(ctx, sql, args...)
	h.state.leave(err)
	return tag, err
}

func (h *handedTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := h.state.enterStatement(sql, args); err != nil {
		return failedRows{err: err}, err
	}
	rows, err := h.tx.Query(ctx, sql, args...)
	if err != nil {
		h.state.leave(err)
		return rows, err
	}
	return &handedRows{Rows: rows, state: h.state}, nil
}

func (h *handedTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := h.state.enterStatement(sql, args); err != nil {
		return failedRows{err: err}
	}
	return &handedRow{row: h.tx.QueryRow(ctx, sql, args...), state: h.state}
}

// Conn returns the connection of the transaction. Statements sent through it are not watched; one that ends the
// transaction is found at the next statement through tx, or when COMMIT is due.
func (h *handedTx) Conn() *pgx.Conn {
	h.state.doubt()
	return h.tx.Conn()
}

// nestedTx is a savepoint inside a handed transaction. It differs in Commit and Rollback alone, which work, and concern
// the savepoint.
type nestedTx struct {
	handedTx
}

// Commit releases the savepoint.
func (n *nestedTx) Commit(ctx context.Context) error { return n.end(ctx, n.tx.Commit) }

// Rollback rolls back to the savepoint.
func (n *nestedTx) Rollback(ctx context.Context) error { return n.end(ctx, n.tx.Rollback) }

func (n *nestedTx) end(ctx context.Context, end func(context.Context) error) error {
	if err := n.state.enter(); err != nil {
		return err
	}
	err := end(ctx)
	n.state.leave(err)
	return err
}
