package txidem

import (
	"cmp"
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/internal/sqlgen"
)

// session is a connection that is lent by the pool: one of the two.
type session struct {
	pgx *pgxpool.Conn
	sql *sql.Conn
}

// query runs a query on it.
func (s session) query(ctx context.Context, query string, args []any, scan func(scanner) error) error {
	if s.sql != nil {
		return sqlRow(s.sql)(ctx, query, args, scan)
	}
	return pgxRow(s.pgx)(ctx, query, args, scan)
}

// withRetry lends a session to fn, and again after a failure that a new connection or transaction can mend, within the
// time of [Config.Retry]. fn can be repeated without harm, or its error is ErrCommitUnknown.
func (g *Guard) withRetry(ctx context.Context, fn func(s session) error) error {
	b := g.newBudget()
	for {
		closed, err := g.withSession(ctx, fn)
		if err == nil {
			return nil
		}
		d, err := decide(failure{phase: phaseOpen, err: err, ctxErr: ctx.Err(), closed: closed})
		if !b.allows(ctx, d, 0) {
			return err
		}
	}
}

// withSession lends a session to fn, and reports whether the connection has broken.
func (g *Guard) withSession(ctx context.Context, fn func(s session) error) (closed bool, err error) {
	if g.sqlDB != nil {
		return g.withSQL(ctx, fn)
	}
	conn, err := g.acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	err = fn(session{pgx: conn})
	return conn.Conn().IsClosed(), err
}

// withSQL lends a connection of database/sql to fn.
func (g *Guard) withSQL(ctx context.Context, fn func(s session) error) (closed bool, err error) {
	conn, err := g.sqlDB.Conn(ctx)
	if err != nil {
		return false, withContext(ctx, "take a connection from the pool", err)
	}
	defer conn.Close() //nolint:errcheck // gives it back
	err = fn(session{sql: conn})
	closed = err != nil && ctx.Err() == nil && conn.PingContext(ctx) != nil
	return closed, err
}

// asker asks in a transaction.
type asker struct {
	row queryRow
	all queryAll
}

// readCommitted begins transactions that are READ COMMITTED whatever the session has, and have its access mode.
var readCommitted = pgx.TxOptions{
	BeginQuery:  beginQuery(pgx.TxOptions{IsoLevel: pgx.ReadCommitted}),
	CommitQuery: sqlgen.Commit,
}

// readCommittedSQL are the same for database/sql.
var readCommittedSQL = &sql.TxOptions{Isolation: sql.LevelReadCommitted}

// transact runs fn, which only reads, in a transaction, and rolls back, so that whoever counts the commits of a session
// counts messages and nothing else. It is one for the sake of poolers, which may give each statement outside one to another
// server, and READ COMMITTED, since a session whose default is serializable, read only and deferrable would wait for those
// that write.
func (s session) transact(ctx context.Context, fn func(asker) error) error {
	if s.sql != nil {
		tx, err := s.sql.BeginTx(ctx, readCommittedSQL)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // it only read
		return fn(asker{sqlRow(tx), sqlRows(tx)})
	}
	tx, err := s.pgx.BeginTx(ctx, readCommitted)
	if err != nil {
		return err
	}
	defer (&transaction{conn: s.pgx, tx: tx}).rollback(ctx)
	return fn(asker{pgxRow(tx), pgxRows(tx)})
}

// queryRow runs a query of one row at most and hands the row to scan.
type queryRow func(ctx context.Context, query string, args []any, scan func(scanner) error) error

// pgxRow asks by pgx.
func pgxRow(on interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
},
) queryRow {
	return func(ctx context.Context, query string, args []any, scan func(scanner) error) error {
		return scan(on.QueryRow(ctx, query, args...))
	}
}

// sqlRow asks by database/sql.
func sqlRow(on interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
},
) queryRow {
	return func(ctx context.Context, query string, args []any, scan func(scanner) error) error {
		rows, err := on.QueryContext(ctx, query, args...) //nolint:rowserrcheck // firstRow.Scan asks for it
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // firstRow.Scan has read to the end or has an error of its own
		return scan(firstRow{rows})
	}
}

// firstRow scans the first of rows as pgx does: without one it is pgx.ErrNoRows.
type firstRow struct{ rows *sql.Rows }

func (r firstRow) Scan(dest ...any) error {
	if !r.rows.Next() {
		return cmp.Or(r.rows.Err(), pgx.ErrNoRows)
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Next() // reads to the end, so that an error after the row is not lost
	return r.rows.Err()
}

// queryAll runs a query and hands each row to scan.
type queryAll func(ctx context.Context, query string, args []any, scan func(scanner) error) error

func pgxRows(tx pgx.Tx) queryAll {
	return func(ctx context.Context, query string, args []any, scan func(scanner) error) error {
		rows, err := tx.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		return scanAll(rows, scan)
	}
}

func sqlRows(tx *sql.Tx) queryAll {
	return func(ctx context.Context, query string, args []any, scan func(scanner) error) error {
		rows, err := tx.QueryContext(ctx, query, args...) //nolint:rowserrcheck // scanAll asks for it
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // scanAll has read to the end or has an error of its own
		return scanAll(rows, scan)
	}
}

// scanAll hands each row to scan.
func scanAll(rows interface {
	scanner
	Next() bool
	Err() error
}, scan func(scanner) error,
) error {
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
