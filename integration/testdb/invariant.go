package testdb

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	invariantLimit = 5 * time.Second
	pollEvery      = 10 * time.Millisecond
)

// Invariant asserts what must hold whenever no handler runs, whatever happened before: no session of the database is idle
// in a transaction, and each pool that Pool made and that is not closed has every connection back and works. The first
// two may take a moment to come true, so each is asked for until it is or five seconds are over.
//
// Call it at the end of a test, or in a t.Cleanup registered after the last call of Pool, when the pools are still open.
func (db *DB) Invariant(t testing.TB) {
	t.Helper()
	for i, pool := range db.openPools() {
		if err := poolInvariant(pool); err != nil {
			t.Errorf("testdb: invariant: pool %d of the test: %v", i+1, err)
		}
	}
	if err := db.noIdleTransaction(); err != nil {
		t.Errorf("testdb: invariant: %v", err)
	}
}

// poolInvariant waits until every connection is back, then uses the pool once.
func poolInvariant(pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(context.Background(), invariantLimit)
	defer cancel()
	for pool.Stat().AcquiredConns() != 0 {
		if !pause(ctx) {
			return fmt.Errorf("%d connections were acquired and not released", pool.Stat().AcquiredConns())
		}
	}
	var one int
	// In one message, so that a pooler between cannot give its parts to two servers.
	if err := pool.QueryRow(ctx, "SELECT 1", pgx.QueryExecModeExec).Scan(&one); err != nil {
		return fmt.Errorf("it does not work any more: %w", err)
	}
	return nil
}

// noIdleTransaction waits until no session of the database is idle in a transaction.
func (db *DB) noIdleTransaction() error {
	ctx, cancel := context.WithTimeout(context.Background(), invariantLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, db.cluster.server.DSN())
	if err != nil {
		return fmt.Errorf("connect to look at the sessions: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for {
		idle, err := db.idleTransactions(conn)
		if err != nil || len(idle) == 0 {
			return err
		}
		if !pause(ctx) {
			return fmt.Errorf("sessions idle in a transaction, with their last statement:\n%s", strings.Join(idle, "\n"))
		}
	}
}

// idleTransactions describes the sessions that are idle in a transaction. It has a time limit of its own: the last
// look, at the very end of the caller's time, must not fail for that.
func (db *DB) idleTransactions(conn *pgx.Conn) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), invariantLimit)
	defer cancel()
	rows, err := conn.Query(ctx, `SELECT format('pid %s, %s: %s', pid, state, query) FROM pg_stat_activity
		WHERE datname = $1 AND state LIKE 'idle in transaction%' ORDER BY pid`, db.name)
	if err != nil {
		return nil, fmt.Errorf("look at the sessions: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// pause waits until the next look, and reports false when ctx has ended.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pollEvery):
		return true
	}
}
