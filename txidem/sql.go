package txidem

import (
	"context"
	"database/sql"
	"errors"

	"github.com/txidem/txidem-go/internal/pgerr"
)

// NewSQL makes a Guard for a program that has no pool of pgx, but one of database/sql, be it for GORM, bun, sqlx or ent, and
// with any PostgreSQL driver that takes $1 placeholders. It has [Guard.ClaimSQL] and [Guard.ClaimTx], [Guard.Check], and the
// seen-set with [WrapSeen]. Process, Pipeline, ProcessBatch and their wrappers need a Guard of New, and return an error that
// says so. TxOptions and IdleLimit of cfg are for transactions that a Guard of NewSQL does not begin.
func NewSQL(db *sql.DB, cfg *Config) (*Guard, error) {
	if db == nil {
		return nil, errors.New("txidem: NewSQL needs a *sql.DB, got nil")
	}
	g, err := newGuard(cfg)
	if err != nil {
		return nil, err
	}
	g.sqlDB = db
	return g, nil
}

// forgetSQL forgets in a transaction of database/sql.
func (g *Guard) forgetSQL(ctx context.Context, conn *sql.Conn, id string) error {
	tx, err := conn.BeginTx(ctx, readCommittedSQL)
	if err != nil {
		return withContext(ctx, "BEGIN", err)
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after COMMIT; the driver closes what fails
	query := sqlRow(tx)
	err = query(ctx, "SELECT set_config('lock_timeout', $1::text, true)", []any{g.wait}, func(row scanner) error {
		return row.Scan(new(string))
	})
	if err != nil {
		return withContext(ctx, "set lock_timeout", err)
	}
	claimed, err := g.claimBy(ctx, id, query)
	if err != nil {
		return err
	}
	if err := g.forget(ctx, id, claimed, query); err != nil {
		return err
	}
	return afterSQLCommit(ctx, tx.Commit())
}

// afterSQLCommit says what the end of a transaction of database/sql means. Which driver's errors these are is not known,
// so that only an answer of the server proves that nothing was committed.
func afterSQLCommit(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case pgerr.ProvesRollback(err):
		return withContext(ctx, "COMMIT was refused and nothing is stored", err)
	default:
		return &commitUnknownError{cause: err}
	}
}
