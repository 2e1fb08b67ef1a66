package testdb

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/integration/pgserver"
)

// DB is the database of one test. It is safe for concurrent use.
type DB struct {
	cluster *cluster
	name    string

	mu    sync.Mutex
	pools []*pgxpool.Pool
}

// New gives t a database of its own that is as the package's template: a new clone, or one that an earlier test has left
// and that was emptied (see recycle.go). When t has ended it is recycled or dropped, with the sessions that are still in it;
// when t failed, the log names it, and on a server from TXIDEM_DSN it is kept. New may be called from
// parallel tests. It fails t when the package's TestMain does not call Main, or when there is no server.
func New(t testing.TB) *DB {
	t.Helper()
	if shared == nil {
		t.Fatal("testdb.New: the package's TestMain must call testdb.Main")
	}
	if err := shared.ready(); err != nil {
		t.Fatalf("testdb.New: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), adminLimit)
	defer cancel()
	name, err := shared.take(ctx)
	if err != nil {
		t.Fatalf("testdb.New: clone the template database: %v", err)
	}
	db := &DB{cluster: shared, name: name}
	t.Cleanup(func() { db.drop(t) })
	return db
}

// DSN returns the connection string of the database.
func (db *DB) DSN() string { return db.cluster.dsn(db.name) }

// Name returns the database's name.
func (db *DB) Name() string { return db.name }

// Server returns the server the database is on.
func (db *DB) Server() *pgserver.Server { return db.cluster.server }

// drop removes the database, or says where it is.
func (db *DB) drop(t testing.TB) {
	t.Helper()
	if t.Failed() {
		if db.cluster.external() {
			t.Logf("testdb: kept for a look, drop it yourself: %s", db.DSN())
			return
		}
		t.Logf("testdb: database %s ends with its server; set TXIDEM_DSN to a server of yours to keep it for a look", db.name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminLimit)
	defer cancel()
	drop := db.cluster.giveBack
	if t.Failed() {
		drop = func(ctx context.Context, name string) error { return db.cluster.admin(ctx, dropStatement(name)) }
	}
	if err := drop(ctx, db.name); err != nil {
		t.Errorf("testdb: drop the test's database: %v", err)
	}
}
