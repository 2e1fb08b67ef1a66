package handlertx

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// rows are rows of a handed transaction. They hold it until they are closed, which is also what reading to the end and a
// failed Scan do.
type rows struct {
	rows  pgx.Rows
	state *state
	left  bool
}

var _ pgx.Rows = (*rows)(nil)

func (r *rows) Close() {
	r.rows.Close()
	r.leave()
}

func (r *rows) Next() bool {
	more := r.rows.Next()
	if !more {
		r.leave()
	}
	return more
}

func (r *rows) Scan(dest ...any) error {
	r.state.doubtScan(dest)
	err := r.rows.Scan(dest...)
	if err != nil {
		r.Close()
	}
	return err
}

func (r *rows) Values() ([]any, error) {
	values, err := r.rows.Values()
	if err != nil {
		r.Close()
	}
	return values, err
}

// Conn is the connection, as from [Tx.Conn].
func (r *rows) Conn() *pgx.Conn {
	r.state.doubt()
	return r.rows.Conn()
}

func (r *rows) Err() error                                   { return r.rows.Err() }
func (r *rows) CommandTag() pgconn.CommandTag                { return r.rows.CommandTag() }
func (r *rows) FieldDescriptions() []pgconn.FieldDescription { return r.rows.FieldDescriptions() }
func (r *rows) RawValues() [][]byte                          { return r.rows.RawValues() }
func (r *rows) TypeMap() *pgtype.Map                         { return r.rows.TypeMap() }

func (r *rows) leave() {
	if !r.left {
		r.left = true
		r.state.leave(r.rows.Err())
	}
}

// row is the row of QueryRow. It holds the transaction until Scan has read it, as the row below holds the connection.
type row struct {
	row   pgx.Row
	state *state
	left  bool
}

func (r *row) Scan(dest ...any) error {
	r.state.doubtScan(dest)
	err := r.row.Scan(dest...)
	if !r.left {
		r.left = true
		r.state.leave(err)
	}
	return err
}

// batch are the results of a batch on a handed transaction. They hold it until they are closed.
type batch struct {
	results pgx.BatchResults
	state   *state
	left    bool
}

var _ pgx.BatchResults = (*batch)(nil)

func (b *batch) Exec() (pgconn.CommandTag, error) { return b.results.Exec() }

// Query returns rows of pgx's own, which have the connection.
func (b *batch) Query() (pgx.Rows, error) {
	b.state.doubt()
	return b.results.Query()
}

// QueryRow returns a row of pgx's own, which a RowScanner can get the connection from.
func (b *batch) QueryRow() pgx.Row {
	b.state.doubt()
	return b.results.QueryRow()
}

// Tx is nil, since pgx begins no transaction by a batch that is sent inside one; see [pgx.Batch.BeginTx].
func (b *batch) Tx() pgx.Tx { return nil }

func (b *batch) Close() error {
	err := b.results.Close()
	if !b.left {
		b.left = true
		b.state.leave(err)
	}
	return err
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
