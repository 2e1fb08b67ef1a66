package txidem

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// oldestServer is the oldest PostgreSQL whose SQL is used here.
const oldestServer = 130000

// Check looks for everything that the promise needs and that a Guard cannot see while it works: the table with its
// columns, key, collation and persistence, the rights on it, and the settings under which the server keeps what it
// acknowledges. It returns all problems that it found, joined, or nil. Call it when the program starts, after the
// migrations. It only reads.
func (g *Guard) Check(ctx context.Context) error {
	if err := g.ready(); err != nil {
		return err
	}
	return g.withConn(ctx, func(conn *pgxpool.Conn) error {
		serverErr := g.checkServer(ctx, conn)
		tableErr := g.checkTable(ctx, conn)
		return errors.Join(serverErr, tableErr)
	})
}

const serverQuery = `SELECT current_setting('server_version_num')::int4, current_setting('fsync'),
  current_setting('full_page_writes'), current_setting('synchronous_commit'), current_setting('transaction_read_only')`

func (g *Guard) checkServer(ctx context.Context, conn *pgxpool.Conn) error {
	var version int
	var fsync, fullPages, syncCommit, readOnly string
	err := conn.QueryRow(ctx, serverQuery).Scan(&version, &fsync, &fullPages, &syncCommit, &readOnly)
	if err != nil {
		return withContext(ctx, "read the server's settings", err)
	}
	return errors.Join(
		problem(version < oldestServer, "the server's version is %d: PostgreSQL 13 or later is needed", version),
		problem(fsync != "on", "fsync is %s: a crash of the machine can lose acknowledged messages", fsync),
		problem(fullPages != "on", "full_page_writes is %s: a crash of the machine can corrupt the table", fullPages),
		problem(syncCommit == "off", "synchronous_commit is off: a crash of the server can lose acknowledged messages"),
		problem(readOnly == "on", "the session is read only: it is on a standby, or default_transaction_read_only is set"),
	)
}

// tableQuery returns no row when there is no such table. The key is a valid unique index on exactly the two columns, in
// either order, in their own collations; the columns that it merely includes do not count.
const tableQuery = `SELECT c.relkind IN ('r', 'p'),
  NOT EXISTS (SELECT FROM pg_catalog.pg_class AS part
    WHERE (part.oid = c.oid OR part.oid IN (SELECT relid FROM pg_partition_tree(c.oid))) AND part.relpersistence <> 'p'),
  row_security_active(c.oid),
  has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'DELETE'),
  EXISTS (SELECT FROM pg_catalog.pg_index AS i
    WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
      AND i.indnkeyatts = 2
      AND (SELECT array_agg(a.attname::text ORDER BY a.attname)
           FROM unnest((i.indkey::int2[])[0:1], (i.indcollation::oid[])[0:1]) AS k (num, coll)
           JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.num AND a.attcollation = k.coll
          ) = ARRAY['consumer', 'message_id'])
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relname = $2::text`

func (g *Guard) checkTable(ctx context.Context, conn *pgxpool.Conn) error {
	var isTable, logged, rowSecurity, rights, key bool
	err := conn.QueryRow(ctx, tableQuery, g.cfg.Schema, g.cfg.Table).Scan(&isTable, &logged, &rowSecurity, &rights, &key)
	if errors.Is(err, pgx.ErrNoRows) {
		return g.noTable(errors.New("no such name in the catalog"))
	}
	if err != nil {
		return withContext(ctx, "look at the table", err)
	}
	columns, err := g.checkColumns(ctx, conn)
	if err != nil {
		return err
	}
	return errors.Join(
		columns,
		problem(!isTable, "%s is not a table", g.tableName()),
		problem(!logged, "%s is unlogged or temporary, or has a partition that is: a crash empties it, and every message could run again",
			g.tableName()),
		problem(rowSecurity, "row security applies to this role on %s: a hidden record makes a message run again", g.tableName()),
		problem(!rights, "the role needs USAGE on schema %q and SELECT, INSERT and DELETE on %s", g.cfg.Schema, g.tableName()),
		problem(!key, "%s has no valid unique index on exactly (message_id, consumer) in their own collations: nothing stops "+
			"a duplicate", g.tableName()),
	)
}

const columnQuery = `SELECT w.name,
  coalesce(pg_catalog.format_type(a.atttypid, NULL), 'missing'),
  coalesce(a.attnotnull, false), coalesce(l.collname::text, '')
FROM (VALUES ('message_id'), ('consumer'), ('processed_at')) AS w (name)
LEFT JOIN (SELECT a.* FROM pg_catalog.pg_attribute AS a
  JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  WHERE n.nspname = $1::text AND c.relname = $2::text AND NOT a.attisdropped) AS a ON a.attname = w.name
LEFT JOIN pg_catalog.pg_collation AS l ON l.oid = a.attcollation`

// checkColumns returns what is wrong with the columns, and separately an error of the query.
func (g *Guard) checkColumns(ctx context.Context, conn *pgxpool.Conn) (found, err error) {
	rows, err := conn.Query(ctx, columnQuery, g.cfg.Schema, g.cfg.Table)
	if err != nil {
		return nil, withContext(ctx, "look at the columns", err)
	}
	var name, typ, collation string
	var notNull bool
	_, err = pgx.ForEachRow(rows, []any{&name, &typ, &notNull, &collation}, func() error {
		found = errors.Join(found, g.checkColumn(name, typ, collation, notNull))
		return nil
	})
	if err != nil {
		return nil, withContext(ctx, "look at the columns", err)
	}
	return found, nil
}

func (g *Guard) checkColumn(name, typ, collation string, notNull bool) error {
	if name == "processed_at" {
		return errors.Join(
			problem(typ != "timestamp with time zone", "column processed_at of %s is %s: it must be timestamptz", g.tableName(), typ),
			problem(notNull, "column processed_at of %s is NOT NULL: a lease needs NULL", g.tableName()),
		)
	}
	if typ != "text" {
		return problem(true, "column %s of %s is %s: it must be text", name, g.tableName(), typ)
	}
	return errors.Join(
		problem(!notNull, "column %s of %s allows NULL, which no unique index keeps apart", name, g.tableName()),
		problem(collation != "C", `column %s of %s has collation %q: it must be "C", since a changed system collation `+
			"corrupts the index and lets duplicates in", name, g.tableName(), collation),
	)
}

func (g *Guard) tableName() string { return fmt.Sprintf("table %q.%q", g.cfg.Schema, g.cfg.Table) }

// problem returns an error when it is there.
func problem(there bool, format string, args ...any) error {
	if !there {
		return nil
	}
	return fmt.Errorf("txidem: check: "+format, args...)
}
