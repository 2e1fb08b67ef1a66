package integration

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/testdb"
	"github.com/txidem/txidem-go/txidem"
)

// stateLimit bounds the wait for a state that must come. Reaching it fails the test; no test passes by waiting.
const stateLimit = 15 * time.Second

// world is one test's database, pool and guard, and what its handler has done.
type world struct {
	t     *testing.T
	db    *testdb.DB
	pool  *pgxpool.Pool
	guard *txidem.Guard
	calls atomic.Int64
	told  deliveries
}

// deliveries collects what an observer was told.
type deliveries struct {
	mu  sync.Mutex
	all []txidem.DeliveryEvent
}

func (d *deliveries) observe(_ context.Context, delivery txidem.DeliveryEvent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, delivery)
}

func (d *deliveries) list() []txidem.DeliveryEvent {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]txidem.DeliveryEvent(nil), d.all...)
}

const consumer = "ledger"

// newWorld makes a world whose pool and guard are changed by the given funcs: func(*pgxpool.Config), func(*txidem.Config).
func newWorld(t *testing.T, changes ...any) *world {
	t.Helper()
	w := &world{t: t, db: testdb.New(t)}
	cfg := &txidem.Config{Consumer: consumer, Observer: w.told.observe}
	var poolChanges []func(*pgxpool.Config)
	for _, change := range append(wayOf(t), changes...) {
		switch change := change.(type) {
		case func(*pgxpool.Config):
			poolChanges = append(poolChanges, change)
		case func(*txidem.Config):
			change(cfg)
		default:
			t.Fatalf("newWorld: cannot apply a %T", change)
		}
	}
	w.pool = w.db.Pool(t, poolChanges...)
	w.guard = newGuard(t, w.pool, cfg)
	return w
}

func newGuard(t *testing.T, pool *pgxpool.Pool, cfg *txidem.Config) *txidem.Guard {
	t.Helper()
	g, err := txidem.New(pool, cfg)
	require.NoError(t, err)
	return g
}

func conns(n int32) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.MaxConns = n }
}

func execMode(mode pgx.QueryExecMode) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode }
}

func inFlightWait(d time.Duration) func(*txidem.Config) {
	return func(c *txidem.Config) { c.InFlightWait = d }
}

// ok is the ordinary handler: it inserts one row.
func (w *world) ok(ctx context.Context, tx pgx.Tx) error {
	w.calls.Add(1)
	_, err := tx.Exec(ctx, `INSERT INTO biz (v) VALUES ($1)`, "ok")
	return err
}

// process delivers a message to the ordinary handler.
func (w *world) process(id string) (txidem.Outcome, error) {
	return w.guard.Process(w.t.Context(), id, w.ok)
}

// requireOutcome asserts the result of one delivery.
func (w *world) requireOutcome(want txidem.Outcome, id string, fn txidem.Handler) {
	w.t.Helper()
	got, err := w.guard.Process(w.t.Context(), id, fn)
	require.NoError(w.t, err)
	require.Equal(w.t, want.String(), got.String())
}

// requireCalls asserts how often the counting handlers ran.
func (w *world) requireCalls(n int64) {
	w.t.Helper()
	require.Equal(w.t, n, w.calls.Load(), "handler calls")
}

// requireEffects asserts the invariant at the end of a test: as many records as effects, n of each.
func (w *world) requireEffects(n int) {
	w.t.Helper()
	require.Equal(w.t, n, w.count(`SELECT count(*) FROM biz`), "effects")
	require.Equal(w.t, n, w.count(`SELECT count(*) FROM txidem_messages`), "records")
	w.db.Invariant(w.t)
}

func (w *world) count(query string, args ...any) int {
	w.t.Helper()
	var n int
	// In the mode describe_exec a statement outside a transaction is described and executed by two messages, which PgBouncer
	// may give to two servers.
	require.NoError(w.t, w.pool.QueryRow(w.t.Context(), query, append([]any{pgx.QueryExecModeExec}, args...)...).Scan(&n))
	return n
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.pool.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
}

// waitForLockWaiters waits until n sessions of the database wait for a lock. It looks through a connection of its own.
func (w *world) waitForLockWaiters(n int) {
	w.t.Helper()
	w.waitFor(`SELECT count(*) >= $1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`, n)
}

// waitFor waits until the query, which returns one boolean, says true.
func (w *world) waitFor(query string, args ...any) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.db.DSN())
	require.NoError(w.t, err)
	defer conn.Close(context.WithoutCancel(w.t.Context()))
	require.Eventually(w.t, func() bool {
		var met bool
		require.NoError(w.t, conn.QueryRow(w.t.Context(), query, args...).Scan(&met))
		return met
	}, stateLimit, 5*time.Millisecond, query)
}

// holder is a delivery that stays inside its handler until it is released.
type holder struct {
	inside  chan struct{} // closed when the handler runs
	release chan error    // what the handler is to return
	done    chan struct{}
	outcome txidem.Outcome
	err     error
}

// hold starts a delivery of id by g and returns when its handler has inserted its row.
func (w *world) hold(g *txidem.Guard, id string) *holder {
	w.t.Helper()
	h := &holder{inside: make(chan struct{}), release: make(chan error, 1), done: make(chan struct{})}
	go func() {
		defer close(h.done)
		h.outcome, h.err = g.Process(context.WithoutCancel(w.t.Context()), id, func(ctx context.Context, tx pgx.Tx) error {
			if err := w.ok(ctx, tx); err != nil {
				return err
			}
			close(h.inside)
			return <-h.release
		})
	}()
	select {
	case <-h.inside:
	case <-h.done:
		require.FailNow(w.t, "the holder's handler did not run", "%v %v", h.outcome, h.err)
	}
	return h
}

// end lets the handler return err and waits for the delivery.
func (h *holder) end(err error) {
	h.release <- err
	<-h.done
}
