package txidem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// oldestServer is the oldest PostgreSQL whose SQL is used here.
const oldestServer = 140000

// Check looks for what a Guard relies on and cannot see while it works:
//
//   - the table: its columns with their types and collations, a valid unique index on exactly the key and no other unique
//     index, no unlogged part, and no trigger or rule that fires when a record is made or removed;
//   - the role: USAGE on the schema, SELECT and INSERT for Process, DELETE for the rest, and row security, as far as it
//     applies to this role;
//   - the server: its version, fsync, full_page_writes and synchronous_commit;
//   - the session: whether it may write, and whether a timeout of its own is shorter than [Config.InFlightWait].
//
// It returns every problem that it found, each an error of its own in one line, joined by [errors.Join]; or nil. Some of
// them leave Process unharmed, and say so. Call it when the program starts, after the migrations. It only reads, in one
// transaction of one connection.
//
// It does not see what happens outside that session: whether a failover goes to a standby that lags behind, and so loses
// acknowledged messages, effect and record together; whether the disk keeps what it was told to flush; or what another role
// may do. Nor does it try a claim: further columns and constraints of a table made by hand show at the first message.
func (g *Guard) Check(ctx context.Context) error {
	return g.withConn(ctx, func(conn *pgxpool.Conn) error {
		var found findings
		if err := g.check(ctx, conn, &found); err != nil {
			found = append(found, withContext(ctx, "check", err))
		}
		return errors.Join(found...)
	})
}

// checking leaves the access mode to the session, since that is looked at. Where serializable, read only and deferrable are
// the session's defaults, a transaction waits for those that write, so it is READ COMMITTED.
var checking = pgx.TxOptions{BeginQuery: beginQuery(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})}

// check looks in a transaction for the sake of poolers, which may give each statement outside one to another server. It ends
// with a rollback, so that whoever counts the commits of a session counts messages and nothing else. An error is one of the
// look itself.
func (g *Guard) check(ctx context.Context, conn *pgxpool.Conn, found *findings) error {
	tx, err := conn.BeginTx(ctx, checking)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // nothing is lost with a connection that cannot
	return g.look(ctx, tx, found)
}

// look adds what it finds.
func (g *Guard) look(ctx context.Context, tx pgx.Tx, found *findings) error {
	if err := g.checkServer(ctx, tx, found); err != nil {
		return fmt.Errorf("read the server's settings: %w", err)
	}
	there, err := g.checkTable(ctx, tx, found)
	if err != nil {
		return fmt.Errorf("look at the table: %w", err)
	}
	if !there {
		return nil
	}
	if err := g.checkColumns(ctx, tx, found); err != nil {
		return fmt.Errorf("look at the columns: %w", err)
	}
	if err := g.checkHazards(ctx, tx, found); err != nil {
		return fmt.Errorf("look for triggers, rules and indexes: %w", err)
	}
	return nil
}

// finding is one problem.
type finding struct {
	text string
	kind error // ErrNoTable, or nil
}

func (f *finding) Error() string { return "txidem: check: " + f.text }

func (f *finding) Unwrap() error { return f.kind }

type findings []error

// add adds a problem if it is there.
func (f *findings) add(there bool, format string, args ...any) {
	if there {
		*f = append(*f, &finding{text: fmt.Sprintf(format, args...)})
	}
}

// serverQuery reads the timeouts in milliseconds. PostgreSQL has transaction_timeout from version 17 on.
const serverQuery = `SELECT current_setting('server_version_num')::int4, current_setting('fsync'),
  current_setting('full_page_writes'), current_setting('synchronous_commit'),
  current_setting('transaction_read_only') = 'on', pg_catalog.pg_is_in_recovery(),
  (SELECT setting::int8 FROM pg_catalog.pg_settings WHERE name = 'statement_timeout'),
  coalesce((SELECT setting::int8 FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout'), 0)`

func (g *Guard) checkServer(ctx context.Context, tx pgx.Tx, found *findings) error {
	var version int
	var fsync, fullPages, syncCommit string
	var readOnly, standby bool
	var statement, transaction int64
	err := tx.QueryRow(ctx, serverQuery).Scan(&version, &fsync, &fullPages, &syncCommit, &readOnly, &standby,
		&statement, &transaction)
	if err != nil {
		return err
	}
	found.add(version < oldestServer, "the server's version is %d: PostgreSQL %d or later is needed",
		version, oldestServer/10000)
	found.add(fsync != "on", "fsync is %s: a crash of the machine can lose acknowledged messages", fsync)
	found.add(fullPages != "on", "full_page_writes is %s: a crash of the machine can corrupt the table", fullPages)
	found.add(syncCommit == "off", "synchronous_commit is off: a crash of the server can lose acknowledged messages")
	g.checkWritable(standby, readOnly, found)
	g.checkTimeout("statement_timeout", statement, found)
	g.checkTimeout("transaction_timeout", transaction, found)
	return nil
}

// checkWritable tells a server that takes no writes from a session that was told to make none.
func (g *Guard) checkWritable(standby, readOnly bool, found *findings) {
	asked := readOnly && !standby
	writes := g.cfg.TxOptions.AccessMode == pgx.ReadWrite
	found.add(standby, "the server is a standby, which takes no claim: connect to the primary, "+
		"by target_session_attrs=read-write for one")
	found.add(asked && !writes, "the session is read only, since default_transaction_read_only is on for this role, "+
		"database or connection: turn it off")
	found.add(asked && writes, "the session is read only, since default_transaction_read_only is on: Process works by the "+
		"TxOptions, Remember and Forget do not")
}

// checkTimeout looks at a timeout of the session, 0 meaning none. It ends a wait for a copy in flight when it is shorter.
func (g *Guard) checkTimeout(setting string, ms int64, found *findings) {
	limit := time.Duration(ms) * time.Millisecond
	found.add(ms > 0 && limit <= g.cfg.InFlightWait, "%s is %s and InFlightWait is %s: a wait for a copy in flight is cut "+
		"off by the former: raise %s, or lower InFlightWait", setting, limit, g.cfg.InFlightWait, setting)
}
