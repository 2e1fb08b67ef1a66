package testdb

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// poolCloseLimit bounds the end of a pool: Close waits for every connection to be released, a leaked one included.
const poolCloseLimit = 15 * time.Second

// Pool returns a new pool on the database, with its configuration changed by the given funcs. It is closed when t has
// ended; a connection that was not released by then fails t.
func (db *DB) Pool(t testing.TB, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(db.DSN())
	if err != nil {
		t.Fatalf("testdb: %v", err)
	}
	for _, f := range change {
		f(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatalf("testdb: make a pool: %v", err)
	}
	db.mu.Lock()
	db.pools = append(db.pools, pool)
	db.mu.Unlock()
	t.Cleanup(func() { db.closePool(t, pool) })
	return pool
}

// closePool closes a pool and forgets it.
func (db *DB) closePool(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	db.forget(pool)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(poolCloseLimit):
		t.Errorf("testdb: the pool does not close, %d connections were acquired and not released", pool.Stat().AcquiredConns())
	}
}

// forget takes a pool off the list that Invariant looks at.
func (db *DB) forget(pool *pgxpool.Pool) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for i, p := range db.pools {
		if p == pool {
			db.pools = append(db.pools[:i], db.pools[i+1:]...)
			return
		}
	}
}

// openPools returns the pools that are not closed.
func (db *DB) openPools() []*pgxpool.Pool {
	db.mu.Lock()
	defer db.mu.Unlock()
	return append([]*pgxpool.Pool(nil), db.pools...)
}
