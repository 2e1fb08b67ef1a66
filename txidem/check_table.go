package txidem

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

func (g *Guard) tableName() string { return fmt.Sprintf("table %q.%q", g.cfg.Schema, g.cfg.Table) }

// isKey says of the index i whether it is the key: unique, on exactly the two columns, in either order and in their own
// collations. Columns that it merely includes do not count.
const isKey = `(i.indisunique AND i.indimmediate AND i.indpred IS NULL AND i.indnkeyatts = 2
  AND (SELECT array_agg(a.attname::text ORDER BY a.attname)
       FROM unnest((i.indkey::int2[])[0:1], (i.indcollation::oid[])[0:1]) AS k (num, coll)
       JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.num AND a.attcollation = k.coll
      ) = ARRAY['consumer', 'message_id'])`

// tableQuery returns no row when there is no such table.
const tableQuery = `SELECT c.relkind IN ('r', 'p'),
  NOT EXISTS (SELECT FROM pg_catalog.pg_class AS part
    WHERE (part.oid = c.oid OR part.oid IN (SELECT relid FROM pg_partition_tree(c.oid))) AND part.relpersistence <> 'p'),
  row_security_active(c.oid),
  EXISTS (SELECT FROM pg_catalog.pg_index AS i WHERE i.indrelid = c.oid AND i.indisvalid AND ` + isKey + `),
  has_schema_privilege(n.oid, 'USAGE'), has_table_privilege(c.oid, 'SELECT'),
  has_table_privilege(c.oid, 'INSERT'), has_table_privilege(c.oid, 'DELETE')
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relname = $2::text`

// tableFacts are the columns of tableQuery.
type tableFacts struct {
	isTable, logged, rowSecurity, key bool
	usage, read, insert, remove       bool // what the role may do
}

// checkTable reports whether there is a table.
func (g *Guard) checkTable(ctx context.Context, tx pgx.Tx, found *findings) (there bool, err error) {
	var t tableFacts
	err = tx.QueryRow(ctx, tableQuery, g.cfg.Schema, g.cfg.Table).Scan(&t.isTable, &t.logged, &t.rowSecurity, &t.key,
		&t.usage, &t.read, &t.insert, &t.remove)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		*found = append(*found, &finding{kind: ErrNoTable, text: fmt.Sprintf(
			"%s does not exist: apply the migrations to schema %q, or correct Schema and Table", g.tableName(), g.cfg.Schema)})
		return false, nil
	case err != nil:
		return false, err
	case !t.isTable:
		found.add(true, "%s is not a table", g.tableName())
		return false, nil
	}
	g.checkRecords(t, found)
	g.checkRights(t, found)
	return true, nil
}

// checkRecords looks at what keeps records, and keeps them apart.
func (g *Guard) checkRecords(t tableFacts, found *findings) {
	name := g.tableName()
	found.add(!t.logged, "%s is unlogged or temporary, or has a partition that is: a crash empties it, and every message "+
		"could run again", name)
	found.add(t.rowSecurity, "row security applies to this role on %s: a message whose record is hidden runs again, or fails "+
		"at every delivery", name)
	found.add(!t.key, "%s has no valid unique index on exactly (message_id, consumer) in their own collations: nothing stops "+
		"a duplicate", name)
}

func (g *Guard) checkRights(t tableFacts, found *findings) {
	name := g.tableName()
	found.add(!t.usage, "the role lacks USAGE on schema %q: nothing works without it", g.cfg.Schema)
	found.add(!t.read || !t.insert, "the role lacks SELECT or INSERT on %s: Process needs both", name)
	found.add(!t.remove, "the role lacks DELETE on %s: Forget and WithSavepoints need it, and so does the removal of old "+
		"records; Process works without it", name)
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

func (g *Guard) checkColumns(ctx context.Context, tx pgx.Tx, found *findings) error {
	rows, err := tx.Query(ctx, columnQuery, g.cfg.Schema, g.cfg.Table)
	if err != nil {
		return err
	}
	var name, typ, collation string
	var notNull bool
	_, err = pgx.ForEachRow(rows, []any{&name, &typ, &notNull, &collation}, func() error {
		g.checkColumn(name, typ, collation, notNull, found)
		return nil
	})
	return err
}

func (g *Guard) checkColumn(name, typ, collation string, notNull bool, found *findings) {
	column := fmt.Sprintf("column %s of %s", name, g.tableName())
	switch {
	case name == "processed_at":
		found.add(typ != "timestamp with time zone", "%s is %s: it must be timestamptz", column, typ)
		found.add(notNull, "%s is NOT NULL: it must allow NULL, which stands for a message that somebody holds", column)
	case typ != "text":
		found.add(true, "%s is %s: it must be text", column, typ)
	default:
		found.add(!notNull, "%s allows NULL, which no unique index keeps apart", column)
		found.add(collation != "C", `%s has collation %q: it must be "C", since a changed system collation corrupts the index `+
			"and lets duplicates in", column, collation)
	}
}

// hazardQuery lists what fires when a record of the table, or of one of its partitions, is made or removed: user triggers
// on INSERT and DELETE (12 is the bits of both), but for the copies that partitions have of a trigger of the table's; rules;
// and whatever keeps rows unique beside the key, valid or not, since an index is heeded before it is valid.
const hazardQuery = `WITH root AS (SELECT c.oid FROM pg_catalog.pg_class AS c
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1::text AND c.relname = $2::text),
part AS (SELECT c.oid, n.nspname::text AS schema, c.relname::text AS name FROM root, pg_catalog.pg_class AS c
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.oid = root.oid OR c.oid IN (SELECT relid FROM pg_partition_tree(root.oid))),
firing (enabled) AS (SELECT unnest(CASE current_setting('session_replication_role')
  WHEN 'replica' THEN ARRAY['R', 'A']::"char"[] ELSE ARRAY['O', 'A']::"char"[] END))
SELECT 'trigger', t.tgname::text, schema, name FROM part JOIN pg_catalog.pg_trigger AS t ON t.tgrelid = part.oid
WHERE NOT t.tgisinternal AND t.tgparentid = 0 AND t.tgtype & 12 <> 0 AND t.tgenabled IN (SELECT enabled FROM firing)
UNION ALL
SELECT 'rule', r.rulename::text, schema, name FROM root JOIN part USING (oid)
JOIN pg_catalog.pg_rewrite AS r ON r.ev_class = root.oid
WHERE r.ev_type <> '1' AND r.ev_enabled IN (SELECT enabled FROM firing)
UNION ALL
SELECT 'index', x.relname::text, schema, name FROM part JOIN pg_catalog.pg_index AS i ON i.indrelid = part.oid
JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
WHERE (i.indisunique OR i.indisexclusion) AND i.indisready AND NOT coalesce(` + isKey + `, false)
ORDER BY 1, 3, 4, 2`

// hazards are what can go wrong with what hazardQuery lists.
var hazards = map[string]string{
	"trigger": "which fires when a record is made or removed: it can change the record, keep it out or fail the message",
	"rule":    "and a claim fails on one for INSERT or UPDATE, and one for DELETE changes what Forget removes",
	"index": "which keeps rows unique by something else than the key: a new message whose record meets another one there " +
		"fails at every delivery",
}

func (g *Guard) checkHazards(ctx context.Context, tx pgx.Tx, found *findings) error {
	rows, err := tx.Query(ctx, hazardQuery, g.cfg.Schema, g.cfg.Table)
	if err != nil {
		return err
	}
	var kind, name, schema, table string
	_, err = pgx.ForEachRow(rows, []any{&kind, &name, &schema, &table}, func() error {
		found.add(true, "table %q.%q has the %s %q, %s", schema, table, kind, name, hazards[kind])
		return nil
	})
	return err
}
