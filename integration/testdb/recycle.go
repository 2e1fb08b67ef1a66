package testdb

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// A database that a test left as it found it, but for rows in tables that are empty in the template, is emptied and given
// to a later test: cloning and dropping take seconds where emptying takes milliseconds. Everything else is dropped.

// catalogQuery describes what a test may have changed beside rows. Clones agree with their template in all of it.
const catalogQuery = `SELECT string_agg(line, E'\n' ORDER BY line) FROM (
  SELECT format('schema %s %s', nspname, nspacl)
    FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
  UNION ALL SELECT format('relation %s %s %s %s %s %s %s %s', relnamespace::regnamespace, relname, relkind, relpersistence,
    relrowsecurity, relacl, relowner::regrole, reloptions)
    FROM pg_class WHERE relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
  UNION ALL SELECT format('column %s %s %s %s %s %s %s', attrelid::regclass, attname, format_type(atttypid, atttypmod),
    attcollation, attnotnull, attisdropped, atthasdef)
    FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
    WHERE relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
  UNION ALL SELECT format('constraint %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
  UNION ALL SELECT format('index %s %s', indexrelid::regclass, indisvalid) FROM pg_index
  UNION ALL SELECT format('trigger %s %s %s', tgrelid::regclass, tgname, tgenabled) FROM pg_trigger
  UNION ALL SELECT format('rule %s %s', ev_class::regclass, rulename) FROM pg_rewrite
  UNION ALL SELECT format('policy %s %s', polrelid::regclass, polname) FROM pg_policy
  UNION ALL SELECT format('function %s', oid::regprocedure) FROM pg_proc
    WHERE pronamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema')
  UNION ALL SELECT format('setting %s %s', setrole, setconfig) FROM pg_db_role_setting
    WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
  UNION ALL SELECT format('extension %s', extname) FROM pg_extension
  UNION ALL SELECT format('event trigger %s', evtname) FROM pg_event_trigger
  UNION ALL SELECT format('large object %s', oid) FROM pg_largeobject_metadata
  UNION ALL SELECT format('prepared transaction %s', gid) FROM pg_prepared_xacts WHERE database = current_database()
) AS lines (line)`

const tablesQuery = `SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'p')
  AND relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`

// inventory is what a database holds: its catalog and the rows of the tables that are not empty in the template, as text,
// and the names of those that are.
type inventory struct {
	text  string
	empty []string
}

// takeInventory reads the template.
func takeInventory(ctx context.Context, conn *pgx.Conn) (inventory, error) {
	rows, err := conn.Query(ctx, tablesQuery)
	if err != nil {
		return inventory{}, err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return inventory{}, err
	}
	var inv inventory
	for _, table := range tables {
		content, err := contentOf(ctx, conn, table)
		if err != nil {
			return inventory{}, err
		}
		if content == "" {
			inv.empty = append(inv.empty, table)
		}
	}
	inv.text, err = inv.read(ctx, conn)
	return inv, err
}

// read returns the text of the inventory for the database of conn.
func (inv inventory) read(ctx context.Context, conn *pgx.Conn) (string, error) {
	var catalog string
	if err := conn.QueryRow(ctx, catalogQuery).Scan(&catalog); err != nil {
		return "", err
	}
	rows, err := conn.Query(ctx, tablesQuery)
	if err != nil {
		return "", err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", err
	}
	for _, table := range tables {
		if inv.isEmpty(table) {
			continue
		}
		content, err := contentOf(ctx, conn, table)
		if err != nil {
			return "", err
		}
		catalog += "\n" + table + ":" + content
	}
	return catalog, nil
}

func (inv inventory) isEmpty(table string) bool {
	for _, name := range inv.empty {
		if name == table {
			return true
		}
	}
	return false
}

func contentOf(ctx context.Context, conn *pgx.Conn, table string) (string, error) {
	var content string
	all := `SELECT coalesce(string_agg(t::text, E'\n' ORDER BY t::text), '') FROM ` + table + ` AS t`
	err := conn.QueryRow(ctx, all).Scan(&content)
	return content, err
}

// errChanged: the test has left more than rows.
var errChanged = errors.New("the database was changed")

// recycle empties a database for a later test. An error means that it is to be dropped.
func (c *cluster) recycle(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, c.dsn(name))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := alone(ctx, conn); err != nil {
		return err
	}
	text, err := c.inventory.read(ctx, conn)
	if err != nil {
		return err
	}
	if text != c.inventory.text {
		return errChanged
	}
	if len(c.inventory.empty) > 0 {
		_, err = conn.Exec(ctx, "TRUNCATE "+strings.Join(c.inventory.empty, ", ")+" RESTART IDENTITY")
	}
	return err
}

// alone ends the sessions that the test has left, those of a pooler in between for one, and waits until they are gone.
func alone(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, invariantLimit)
	defer cancel()
	for {
		var others int
		err := conn.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`).Scan(&others)
		if err != nil || others == 0 {
			return err
		}
		if !pause(ctx) {
			return fmt.Errorf("%d sessions are left", others)
		}
	}
}

// take returns a database for a test: one that was recycled, or a new clone of the template.
func (c *cluster) take(ctx context.Context) (string, error) {
	c.mu.Lock()
	if n := len(c.free); n > 0 {
		name := c.free[n-1]
		c.free = c.free[:n-1]
		c.mu.Unlock()
		return name, nil
	}
	c.mu.Unlock()
	name := randomName("test")
	return name, c.create(ctx, name)
}

// giveBack keeps the database for a later test when it can be recycled, and drops it otherwise.
func (c *cluster) giveBack(ctx context.Context, name string) error {
	if c.recycle(ctx, name) != nil {
		return c.admin(ctx, dropStatement(name))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, name)
	return nil
}
