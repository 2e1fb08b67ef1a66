package testdb_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/integration/testdb"
)

func TestMain(m *testing.M) {
	testdb.Main(m, testdb.Config{Setup: func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CREATE TABLE from_template (id int)")
		return err
	}})
}

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			db := testdb.New(t)
			pool := db.Pool(t)
			if _, err := pool.Exec(t.Context(), "INSERT INTO from_template VALUES (1)"); err != nil {
				t.Fatal(err)
			}
			var rows int
			if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM from_template").Scan(&rows); err != nil {
				t.Fatal(err)
			}
			if rows != 1 {
				t.Errorf("%d rows, want the one of this test", rows)
			}
			db.Invariant(t)
		})
	}
}

// A database in which a test has changed more than rows is dropped, with the sessions that are left in it.
func TestChangedDatabaseIsDropped(t *testing.T) {
	t.Parallel()
	watch := testdb.New(t).Pool(t)
	for what, change := range map[string]string{
		"table":    "CREATE TABLE further ()",
		"column":   "ALTER TABLE from_template ADD COLUMN further int",
		"function": "CREATE FUNCTION further() RETURNS int LANGUAGE sql AS 'SELECT 1'",
		"setting":  "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET lock_timeout = 7', current_database()); END $$",
	} {
		var name string
		t.Run(what, func(t *testing.T) {
			inner := testdb.New(t)
			name = inner.Name()
			conn, err := pgx.Connect(t.Context(), inner.DSN()) // left open: the drop is forced
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Exec(t.Context(), change); err != nil {
				t.Fatal(err)
			}
		})
		var there bool
		err := watch.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there)
		if err != nil || there {
			t.Errorf("%s: database %s still there: %v (%v)", what, name, there, err)
		}
	}
}

func TestPoolTakesChanges(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t).Pool(t, func(c *pgxpool.Config) { c.MaxConns = 3 })
	if got := pool.Stat().MaxConns(); got != 3 {
		t.Errorf("MaxConns = %d", got)
	}
}

// recorder is a testing.TB that notes failures.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper()                   {}
func (r *recorder) Errorf(f string, a ...any) { r.errors = append(r.errors, fmt.Sprintf(f, a...)) }

func TestInvariantSeesAnOpenTransaction(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	pool := db.Pool(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{TB: t}
	db.Invariant(r)
	all := strings.Join(r.errors, "\n")
	for _, want := range []string{"1 connections were acquired", "idle in transaction: begin"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %q", want, all)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	db.Invariant(t)
}
