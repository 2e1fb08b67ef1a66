package migrations

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/internal/sqlgen"
)

// The statements about the version table; see Config.sql for {versions}.
const (
	createVersions = `CREATE TABLE IF NOT EXISTS {versions} (
  version    integer PRIMARY KEY,
  name       text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
)`
	insertVersion = `INSERT INTO {versions} (version, name) VALUES ($1::integer, $2::text)`
	deleteVersion = `DELETE FROM {versions} WHERE version = $1::integer AND name = $2::text`
	maxVersion    = `SELECT coalesce(max(version), 0) FROM {versions}`
	tableExists   = `SELECT EXISTS (SELECT FROM pg_catalog.pg_class AS c
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  WHERE n.nspname = $1::text AND c.relname = $2::text)`

	// Keyed by database, schema and table. Two keys that hash alike make two migrations wait for each other: no harm.
	takeLock = `SELECT set_config('lock_timeout', $1::text, true),
  pg_advisory_xact_lock(hashtextextended(format('txidem %I %I %I', current_database(), $2::text, $3::text), 0))`
)

func (c Config) sql(statement string) string {
	return strings.ReplaceAll(statement, "{versions}", sqlgen.Qualify(c.Schema, sqlgen.VersionTable(c.Table)))
}

// Both are READ COMMITTED whatever the role's default is. The version is read after the wait for the lock, and a snapshot
// taken before the wait would not show what the holder of the lock has done. And where serializable and deferrable are the
// default, a look would wait for everybody who writes.
var (
	migrating = pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}
	reading   = pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}
)

// locked runs fn in a transaction that holds the migration lock, with the version read again under it. The lock ends
// with the transaction, so no error can leave it behind. After an error the Report says which version was found, since
// what fn did is rolled back, or its COMMIT was answered by nothing.
func (c Config) locked(
	ctx context.Context, db DB, found int, fn func(tx pgx.Tx, current int) (Report, error),
) (report Report, err error) {
	doing := "a transaction"
	err = pgx.BeginTxFunc(ctx, db, migrating, func(tx pgx.Tx) error {
		if found, err = c.lock(ctx, tx, found); err != nil {
			return err
		}
		doing = "COMMIT (Status says whether it was done)"
		report, err = fn(tx, found)
		return err
	})
	if err != nil {
		return unchanged(found), c.explain(doing, err)
	}
	return report, nil
}

// lock takes the migration lock, and returns the version of the schema under it; found is the one from before.
func (c Config) lock(ctx context.Context, tx pgx.Tx, found int) (int, error) {
	if _, err := tx.Exec(ctx, takeLock, sqlgen.Timeout(c.LockTimeout), c.Schema, c.Table); err != nil {
		return found, c.explain("the migration lock", err)
	}
	if err := c.createVersions(ctx, tx); err != nil {
		return found, err
	}
	return c.version(ctx, tx)
}

// createVersions looks first: CREATE TABLE IF NOT EXISTS wants the CREATE privilege even when there is nothing to create.
func (c Config) createVersions(ctx context.Context, tx pgx.Tx) error {
	var exists bool
	err := tx.QueryRow(ctx, tableExists, c.Schema, sqlgen.VersionTable(c.Table)).Scan(&exists)
	if err != nil || exists {
		return c.explain("looking for the version table", err)
	}
	_, err = tx.Exec(ctx, c.sql(createVersions))
	return c.explain("creating the version table", err)
}

// readVersion reads the version without any lock, in a read-only look before the real work.
func (c Config) readVersion(ctx context.Context, db DB) (int, error) {
	var current int
	err := pgx.BeginTxFunc(ctx, db, reading, func(tx pgx.Tx) (err error) {
		current, err = c.version(ctx, tx)
		return err
	})
	return current, c.explain("a read-only transaction", err)
}

func (c Config) version(ctx context.Context, tx pgx.Tx) (int, error) {
	var exists bool
	err := tx.QueryRow(ctx, tableExists, c.Schema, sqlgen.VersionTable(c.Table)).Scan(&exists)
	if err != nil || !exists {
		return 0, c.explain("looking for the version table", err)
	}
	var current int
	err = tx.QueryRow(ctx, c.sql(maxVersion)).Scan(&current)
	if err == nil && current < 0 {
		err = fmt.Errorf("version %d was not written by this package: correct the table", current)
	}
	return current, c.explain("reading the version table", err)
}
