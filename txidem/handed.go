package txidem

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// handedTx is the transaction as the handler gets it: a pgx.Tx whose end belongs to txidem. It embeds no pgx.Tx, so that a
// method that pgx adds is a compile error here and not a hole.
type handedTx struct {
	tx    pgx.Tx
	state *handover
}

var _ pgx.Tx = (*handedTx)(nil)

// handover is shared by the handed transaction and the savepoints made from it.
type handover struct {
	back    atomic.Bool            // the handler has returned
	refused atomic.Pointer[string] // the first method that was refused
}

func handOver(tx pgx.Tx) *handedTx {
	return &handedTx{tx: tx, state: &handover{}}
}

// takeBack ends the handler's use of the transaction: from here on every method returns pgx.ErrTxClosed.
func (h *handedTx) takeBack() { h.state.back.Store(true) }

// misuse says what the handler did that it must not do, whatever it returned.
func (h *handedTx) misuse() error {
	if method := h.state.refused.Load(); method != nil {
		return fmt.Errorf("%w: it called %s on the transaction, which is rolled back now", ErrTxControl, *method)
	}
	return nil
}

func (h *handedTx) refuse(method string) error {
	h.state.refused.CompareAndSwap(nil, &method)
	return fmt.Errorf("%w: %s is refused: return nil to commit, an error to roll back", ErrTxControl, method)
}

// usable is asked before anything is sent.
func (s *handover) usable() error {
	if s.back.Load() {
		return fmt.Errorf("%w: the handler that it was handed to has returned", pgx.ErrTxClosed)
	}
	return nil
}

// Commit refuses: the transaction is committed when the handler returns nil.
func (h *handedTx) Commit(context.Context) error { return h.refuse("Commit") }

// Rollback refuses: the transaction is rolled back when the handler returns an error.
func (h *handedTx) Rollback(context.Context) error { return h.refuse("Rollback") }

// Begin makes a savepoint.
func (h *handedTx) Begin(ctx context.Context) (pgx.Tx, error) { return beginNested(ctx, h.tx, h.state) }

func (h *handedTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, src pgx.CopyFromSource) (int64, error) {
	if err := h.state.usable(); err != nil {
		return 0, err
	}
	return h.tx.CopyFrom(ctx, table, columns, src)
}

func (h *handedTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := h.state.usable(); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return h.tx.SendBatch(ctx, b)
}

func (h *handedTx) LargeObjects() pgx.LargeObjects { return h.tx.LargeObjects() }

func (h *handedTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := h.state.usable(); err != nil {
		return nil, err
	}
	return h.tx.Prepare(ctx, name, sql)
}

func (h *handedTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := h.state.usable(); err != nil {
		return pgconn.CommandTag{}, err
	}
	return h.tx.Exec(ctx, sql, args...)
}

func (h *handedTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := h.state.usable(); err != nil {
		return failedRows{err: err}, err
	}
	return h.tx.Query(ctx, sql, args...)
}

func (h *handedTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := h.state.usable(); err != nil {
		return failedRows{err: err}
	}
	return h.tx.QueryRow(ctx, sql, args...)
}

// Conn returns the connection of the transaction. Statements that end the transaction must not be sent through it.
func (h *handedTx) Conn() *pgx.Conn { return h.tx.Conn() }

// nestedTx is a savepoint inside a handed transaction. It differs in Commit and Rollback alone, which work, and concern
// the savepoint.
type nestedTx struct {
	handedTx
}

func beginNested(ctx context.Context, tx pgx.Tx, state *handover) (pgx.Tx, error) {
	if err := state.usable(); err != nil {
		return nil, err
	}
	nested, err := tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &nestedTx{handedTx{tx: nested, state: state}}, nil
}

// Commit releases the savepoint.
func (n *nestedTx) Commit(ctx context.Context) error {
	if err := n.state.usable(); err != nil {
		return err
	}
	return n.tx.Commit(ctx)
}

// Rollback rolls back to the savepoint.
func (n *nestedTx) Rollback(ctx context.Context) error {
	if err := n.state.usable(); err != nil {
		return err
	}
	return n.tx.Rollback(ctx)
}

// failedRows are the rows of a query that was not sent.
type failedRows struct{ err error }

func (r failedRows) Close()                                       {}
func (r failedRows) Err() error                                   { return r.err }
func (r failedRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (r failedRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (r failedRows) Next() bool                                   { return false }
func (r failedRows) Scan(...any) error                            { return r.err }
func (r failedRows) Values() ([]any, error)                       { return nil, r.err }
func (r failedRows) RawValues() [][]byte                          { return nil }
func (r failedRows) Conn() *pgx.Conn                              { return nil }
func (r failedRows) TypeMap() *pgtype.Map                         { return nil }
