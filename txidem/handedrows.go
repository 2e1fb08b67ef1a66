package txidem

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// handedRows are rows of a handed transaction. They hold it until they are closed, which is also what reading to the end
// and a failed Scan do.
type handedRows struct {
	pgx.Rows
	state *handover
	left  bool
}

func (r *handedRows) Close() {
	r.Rows.Close()
	r.leave()
}

func (r *handedRows) Next() bool {
	more := r.Rows.Next()
	if !more {
		r.leave()
	}
	return more
}

func (r *handedRows) Scan(dest ...any) error {
	r.state.doubtScan(dest)
	err := r.Rows.Scan(dest...)
	if err != nil {
		r.Close()
	}
	return err
}

func (r *handedRows) Values() ([]any, error) {
	values, err := r.Rows.Values()
	if err != nil {
		r.Close()
	}
	return values, err
}

// Conn is the connection, as from [handedTx.Conn].
func (r *handedRows) Conn() *pgx.Conn {
	r.state.doubt()
	return r.Rows.Conn()
}

func (r *handedRows) leave() {
	if !r.left {
		r.left = true
		r.state.leave(r.Err())
	}
}

// handedRow is the row of QueryRow. It holds the transaction until Scan has read it, as the row below holds the connection.
type handedRow struct {
	row   pgx.Row
	state *handover
	left  bool
}

func (r *handedRow) Scan(dest ...any) error {
	r.state.doubtScan(dest)
	err := r.row.Scan(dest...)
	if !r.left {
		r.left = true
		r.state.leave(err)
	}
	return err
}

// handedBatch are the results of a batch on a handed transaction. They hold it until they are closed.
type handedBatch struct {
	pgx.BatchResults
	state *handover
	left  bool
}

// Query returns rows of pgx's own, which have the connection.
func (b *handedBatch) Query() (pgx.Rows, error) {
	b.state.doubt()
	return b.BatchResults.Query()
}

// QueryRow returns a row of pgx's own, which a RowScanner can get the connection from.
func (b *handedBatch) QueryRow() pgx.Row {
	b.state.doubt()
	return b.BatchResults.QueryRow()
}

func (b *handedBatch) Close() error {
	err := b.BatchResults.Close()
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
