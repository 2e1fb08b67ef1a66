// Package handlertx is the transaction as a handler gets it: a pgx.Tx whose end is not the handler's, and a record of what
// the handler has made of it.
package handlertx

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Tx is a transaction whose end belongs to somebody else than its user: a pgx.Tx whose Commit and Rollback are refused. It
// embeds no pgx.Tx, so that a method that pgx adds is a compile error here and not a hole.
type Tx struct {
	tx    pgx.Tx
	state *state
}

var _ pgx.Tx = (*Tx)(nil)

// Room is room for a Tx and all that it needs, so that it can be a part of something else.
type Room struct {
	tx    Tx
	state state
}

// New makes the transaction that is open on a connection ready for a handler. It is called once.
func (r *Room) New(conn *pgx.Conn, tx pgx.Tx) *Tx {
	r.state.conn = conn
	r.tx = Tx{tx: tx, state: &r.state}
	return &r.tx
}

// Revoke ends the handler's use of the transaction, and of all that came of it: from here on every statement is
// pgx.ErrTxClosed. It returns what the handler has made of it, and may be called again.
func (h *Tx) Revoke() Use {
	h.state.revoke()
	return h.state.seen()
}

// Use returns what the handler has made of the transaction so far.
func (h *Tx) Use() Use { return h.state.seen() }

// PgConn returns the connection, for a look at its state.
func (h *Tx) PgConn() *pgconn.PgConn { return h.state.conn.PgConn() }

// Savepoint makes a savepoint that is for the caller to end, with a transaction to hand on: Handed.
func (h *Tx) Savepoint(ctx context.Context) (*Savepoint, error) {
	if err := h.state.enter(); err != nil {
		return nil, err
	}
	nested, err := h.tx.Begin(ctx)
	h.state.leave(err)
	if err != nil {
		return nil, err
	}
	return &Savepoint{Tx{tx: nested, state: h.state}}, nil
}

// Commit refuses: the transaction is committed when the handler returns nil.
func (h *Tx) Commit(context.Context) error { return h.state.refuseEnd("Commit") }

// Rollback refuses: the transaction is rolled back when the handler returns an error.
func (h *Tx) Rollback(context.Context) error { return h.state.refuseEnd("Rollback") }

// Begin makes a savepoint.
func (h *Tx) Begin(ctx context.Context) (pgx.Tx, error) {
	savepoint, err := h.Savepoint(ctx)
	if err != nil {
		return nil, err
	}
	return savepoint, nil
}

func (h *Tx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, src pgx.CopyFromSource) (int64, error) {
	if err := h.state.enter(); err != nil {
		return 0, err
	}
	n, err := h.tx.CopyFrom(ctx, table, columns, src)
	h.state.leave(err)
	return n, err
}

func (h *Tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := h.state.enterBatch(b); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return &batch{results: h.tx.SendBatch(ctx, b), state: h.state}
}

// LargeObjects is pgx's own: what is done through it is not watched.
func (h *Tx) LargeObjects() pgx.LargeObjects { return h.tx.LargeObjects() }

func (h *Tx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := h.state.enterStatement(sql, nil); err != nil {
		return nil, err
	}
	sd, err := h.tx.Prepare(ctx, name, sql)
	h.state.leave(err)
	return sd, err
}

func (h *Tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := h.state.enterStatement(sql, args); err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := h.tx.Exec(ctx, sql, args...)
	h.state.leave(err)
	return tag, err
}

func (h *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := h.state.enterStatement(sql, args); err != nil {
		return failedRows{err: err}, err
	}
	opened, err := h.tx.Query(ctx, sql, args...)
	if err != nil {
		h.state.leave(err)
		return opened, err
	}
	return &rows{rows: opened, state: h.state}, nil
}

func (h *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := h.state.enterStatement(sql, args); err != nil {
		return failedRows{err: err}
	}
	return &row{row: h.tx.QueryRow(ctx, sql, args...), state: h.state}
}

// Conn returns the connection of the transaction. Statements sent through it are not watched; one that ends the
// transaction is found at the next statement through tx, or when COMMIT is due.
func (h *Tx) Conn() *pgx.Conn {
	h.state.doubt()
	return h.tx.Conn()
}

// Savepoint is a savepoint in the transaction. It differs in Commit and Rollback alone, which work, and concern the
// savepoint.
type Savepoint struct{ Tx }

// Handed is the savepoint as a handler gets it that must not end it.
func (s *Savepoint) Handed() *Tx { return &s.Tx }

// Commit releases the savepoint.
func (s *Savepoint) Commit(ctx context.Context) error { return s.end(ctx, s.tx.Commit) }

// Rollback rolls back to the savepoint.
func (s *Savepoint) Rollback(ctx context.Context) error { return s.end(ctx, s.tx.Rollback) }

func (s *Savepoint) end(ctx context.Context, end func(context.Context) error) error {
	if err := s.state.enter(); err != nil {
		return err
	}
	err := end(ctx)
	s.state.leave(err)
	return err
}
