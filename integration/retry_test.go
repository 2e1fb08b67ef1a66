package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

func isolation(level pgx.TxIsoLevel) func(*txidem.Config) {
	return func(c *txidem.Config) { c.TxOptions.IsoLevel = level }
}

func retries(p txidem.RetryPolicy) func(*txidem.Config) {
	return func(c *txidem.Config) { c.Retry = p }
}

// gatedPool lends a third connection only when the gate is open.
type gatedPool struct {
	*pgxpool.Pool
	lent atomic.Int64
	gate chan struct{}
}

func (p *gatedPool) Acquire(ctx context.Context) (*pgxpool.Conn, error) {
	if p.lent.Add(1) == 3 {
		<-p.gate
	}
	return p.Pool.Acquire(ctx)
}

// Write skew between two messages under SERIALIZABLE: each reads what the other writes, and neither commits before both
// have read, so that one of them must fail. It runs again when the other one is through, and both are processed.
func TestWriteSkew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool := &gatedPool{Pool: w.pool, gate: make(chan struct{})}
	g, err := txidem.New(pool, &txidem.Config{Consumer: consumer, TxOptions: pgx.TxOptions{IsoLevel: pgx.Serializable}})
	require.NoError(t, err)
	var bothRead sync.WaitGroup
	bothRead.Add(2)
	skewed := func() txidem.Handler {
		first := true
		return func(ctx context.Context, tx pgx.Tx) error {
			var n int
			if err := tx.QueryRow(ctx, `SELECT count(*) FROM biz`).Scan(&n); err != nil {
				return err
			}
			if first {
				first = false
				bothRead.Done()
				bothRead.Wait()
			}
			return w.ok(ctx, tx)
		}
	}
	var deliveries sync.WaitGroup
	var through sync.Once
	for _, id := range []string{"a", "b"} {
		deliveries.Go(func() {
			outcome, err := g.Process(t.Context(), id, skewed())
			if err != nil || outcome != txidem.Processed {
				t.Errorf("%s: %v, %v", id, outcome, err)
			}
			through.Do(func() { close(pool.gate) })
		})
	}
	deliveries.Wait()
	w.requireCalls(3)
	w.requireEffects(2)
}

// Conflicts that the handler passes on, wrapped, are tried again in the same delivery.
func TestConflictsAreTriedAgain(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"40001", "40P01"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.requireOutcome(txidem.Processed, "m", func(ctx context.Context, tx pgx.Tx) error {
				require.NoError(t, w.ok(ctx, tx))
				if w.calls.Load() < 3 {
					return fmt.Errorf("wrapped: %w", raise(ctx, tx, state))
				}
				return nil
			})
			w.requireCalls(3)
			w.requireEffects(1)
		})
	}
}

// raise fails a statement with the given SQLSTATE.
func raise(ctx context.Context, tx pgx.Tx, state string) error {
	_, err := tx.Exec(ctx, fmt.Sprintf(`DO $$ BEGIN RAISE EXCEPTION 'raised' USING ERRCODE = '%s'; END $$`, state))
	return err
}

// A conflict that never ends comes back to the caller after MaxAttempts calls of the handler.
func TestConflictsAreTriedABoundedNumberOfTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, retries(txidem.RetryPolicy{MaxAttempts: 3}))
	_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
		w.calls.Add(1)
		return raise(ctx, tx, "40001")
	})
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	require.Equal(t, "40001", pgErr.Code)
	w.requireCalls(3)
	require.Equal(t, 3, w.told.list()[0].Attempts)
	w.requireEffects(0)
}

// A conflict that only COMMIT meets, here in a deferred trigger, is tried again as well.
func TestConflictAtCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`CREATE SEQUENCE runs`)
	w.exec(`CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN IF nextval(''runs'') < 3 THEN RAISE EXCEPTION ''late'' USING ERRCODE = ''40001''; END IF; RETURN NULL; END'`)
	w.exec(`CREATE CONSTRAINT TRIGGER conflict AFTER INSERT ON biz DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION conflict()`)
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireCalls(3)
	w.requireEffects(1)
}

// The caller's deadline ends the attempts, however many more the policy allows.
func TestDeadlineIsRespectedBetweenAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, retries(txidem.RetryPolicy{MaxAttempts: 1000, MaxTime: time.Hour}))
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := w.guard.Process(ctx, "m", func(ctx context.Context, tx pgx.Tx) error {
		w.calls.Add(1)
		return raise(ctx, tx, "40001")
	})
	require.Error(t, err)
	require.Less(t, w.calls.Load(), int64(1000))
	w.requireEffects(0)
}

// A deferred constraint's own refusal, and an application's error, are never tried again.
func TestErrorsOfTheHandlerAreNotTriedAgain(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"own error":        func(context.Context, pgx.Tx) error { return errors.New("card declined") },
		"unique violation": func(ctx context.Context, tx pgx.Tx) error { return raise(ctx, tx, "23505") },
		"statement failed": func(ctx context.Context, tx pgx.Tx) error { return raise(ctx, tx, "22012") },
		"admin's cancel":   func(ctx context.Context, tx pgx.Tx) error { return raise(ctx, tx, "57014") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
				w.calls.Add(1)
				return fail(ctx, tx)
			})
			require.Error(t, err)
			w.requireCalls(1)
			w.requireEffects(0)
		})
	}
}

// A copy in flight is a duplicate under the stricter isolation levels too, where the guard's TxOptions choose them.
func TestCopyInFlightUnderStricterLevels(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			newWorld(t, isolation(level), inFlightWait(time.Minute)).requireCopyInFlightIsADuplicate()
		})
	}
}

// The same where the session's default isolation level is stricter, and the guard chooses none.
func TestCopyInFlightUnderAStricterDefault(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			newWorld(t, defaultIsolation(level), inFlightWait(time.Minute)).requireCopyInFlightIsADuplicate()
		})
	}
}

func defaultIsolation(level string) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["default_transaction_isolation"] = level }
}

func (w *world) requireCopyInFlightIsADuplicate() {
	w.t.Helper()
	first := w.hold(w.guard, "m")
	waiter := make(chan txidem.Outcome, 1)
	go func() {
		outcome, err := w.guard.Process(w.t.Context(), "m", w.ok)
		if err != nil {
			w.t.Error(err)
		}
		waiter <- outcome
	}()
	w.waitForLockWaiters(1)
	first.end(nil)
	require.Equal(w.t, txidem.Duplicate, <-waiter)
	w.requireCalls(1)
	w.requireEffects(1)
}

// Forget and Remember meet a copy in flight under a stricter level of the role.
func TestSeenSetUnderStricterLevels(t *testing.T) {
	t.Parallel()
	w := newWorld(t, defaultIsolation("serializable"), inFlightWait(time.Minute))
	for name, call := range map[string]func(context.Context, string) error{
		"Forget": w.guard.Forget, "Remember": w.guard.Remember,
	} {
		first := w.hold(w.guard, name)
		result := make(chan error, 1)
		go func() { result <- call(t.Context(), name) }()
		w.waitForLockWaiters(1)
		first.end(nil)
		require.NoError(t, <-result, name)
		seen, err := w.guard.Seen(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, name == "Remember", seen)
	}
	w.db.Invariant(t)
}

// A pool full of dead connections costs time and not attempts.
func TestPoolOfDeadConnections(t *testing.T) {
	t.Parallel()
	const n = 16
	w := newWorld(t, conns(n), func(c *pgxpool.Config) { c.MinConns = n }, retries(txidem.RetryPolicy{MaxAttempts: 1}))
	w.fillPool()
	w.terminateOthers()
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireCalls(1)
	w.fillPool()
	w.terminateOthers()
	w.requireOutcome(txidem.Duplicate, "m", w.ok)
	w.fillPool()
	w.terminateOthers()
	require.NoError(t, w.guard.Remember(t.Context(), "n"))
	w.fillPool()
	w.terminateOthers()
	require.NoError(t, w.guard.Forget(t.Context(), "n"))
	w.requireEffects(1)
}

// fillPool makes the pool hold as many live connections as it may.
func (w *world) fillPool() {
	w.t.Helper()
	held := make([]*pgxpool.Conn, w.pool.Config().MaxConns)
	for i := range held {
		var err error
		held[i], err = w.pool.Acquire(w.t.Context())
		require.NoError(w.t, err)
	}
	for _, c := range held {
		c.Release()
	}
}

// terminateOthers ends every session of the database but its own, and returns when they are gone.
func (w *world) terminateOthers() {
	w.t.Helper()
	w.waitFor(`SELECT count(pg_terminate_backend(pid)) >= 0 FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	w.waitFor(`SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
}

// A connection that is lost while the handler runs is a new transaction, and counts as an attempt.
func TestConnectionLostInTheHandler(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string]func(w *world, ctx context.Context, tx pgx.Tx) error{
		"noticed by a statement": func(w *world, ctx context.Context, tx pgx.Tx) error { return w.ok(ctx, tx) },
		"noticed and hidden": func(w *world, ctx context.Context, tx pgx.Tx) error {
			_ = w.ok(ctx, tx)
			return nil
		},
		"noticed and disguised": func(w *world, ctx context.Context, tx pgx.Tx) error {
			if err := w.ok(ctx, tx); err != nil {
				return errors.New("could not insert")
			}
			return nil
		},
		"noticed at COMMIT": func(*world, context.Context, pgx.Tx) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first := true
			w.requireOutcome(txidem.Processed, "m", func(ctx context.Context, tx pgx.Tx) error {
				if !first {
					return w.ok(ctx, tx)
				}
				first = false
				_, err := tx.Exec(ctx, `INSERT INTO biz (v) VALUES ('lost')`)
				require.NoError(t, err)
				w.terminateOthers()
				return rest(w, ctx, tx)
			})
			require.Equal(t, 2, w.told.list()[0].Attempts)
			w.requireEffects(1)
		})
	}
}

// After the caller's context has ended the handler is not run again.
func TestNoRerunAfterTheContextEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := w.guard.Process(ctx, "m", func(ctx context.Context, tx pgx.Tx) error {
		w.calls.Add(1)
		defer cancel()
		return raise(ctx, tx, "40001")
	})
	require.Error(t, err)
	w.requireCalls(1)
	w.requireEffects(0)
}

// A worker that goes silent inside its transaction does not hold the message: the server ends its transaction, the
// message is free, and the worker finds out when it comes back.
func TestSilentWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inFlightWait(time.Minute), func(c *txidem.Config) { c.IdleLimit = 100 * time.Millisecond })
	silent := w.hold(w.guard, "m")
	w.requireOutcome(txidem.Processed, "m", w.ok) // waits for the silent one's end
	silent.end(nil)
	require.NoError(t, silent.err)
	w.requireCalls(2)
	w.requireEffects(1)
}

// The limit is for the transaction of a delivery alone, and a stricter one of the session stays.
func TestIdleLimit(t *testing.T) {
	t.Parallel()
	for own, want := range map[string]string{"0": "5min", "2min": "2min", "1h": "5min"} {
		t.Run(own, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, conns(1))
			w.exec(`SET idle_in_transaction_session_timeout = '` + own + `'`)
			var inside string
			show := func(ctx context.Context, tx pgx.Tx) error {
				return tx.QueryRow(ctx, `SHOW idle_in_transaction_session_timeout`).Scan(&inside)
			}
			for id, outcome := range map[string]txidem.Outcome{"m": txidem.Processed, "": txidem.Unguarded} {
				w.requireOutcome(outcome, id, show)
				require.Equal(t, want, inside, id)
				require.Equal(t, own, w.setting("idle_in_transaction_session_timeout"))
			}
			w.db.Invariant(t)
		})
	}
}

// DDL on the record table behind the back of a prepared claim does not fail a delivery.
func TestTableChangesUnderAPreparedClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conns(1))
	unprepared := func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO biz (v) VALUES ('ok')`)
		return err
	}
	for i, ddl := range []string{
		`SELECT 1`,
		`ALTER TABLE txidem_messages ADD COLUMN note text`,
		`ALTER TABLE txidem_messages DROP COLUMN note`,
		`ALTER TABLE txidem_messages ALTER COLUMN processed_at TYPE timestamptz(3)`,
		`ALTER TABLE txidem_messages ALTER COLUMN message_id TYPE varchar(2000) COLLATE "C"`,
		`ALTER TABLE txidem_messages ALTER COLUMN message_id TYPE text COLLATE "C"`,
		`DISCARD ALL`,
	} {
		w.exec(ddl)
		id := fmt.Sprintf("m%d", i)
		w.requireOutcome(txidem.Processed, id, unprepared)
		w.requireOutcome(txidem.Duplicate, id, unprepared)
	}
	w.pool.Reset() // what the test itself has prepared went with DISCARD ALL
	w.requireEffects(7)
}

// A closed pool is an error at once, not something to wait for.
func TestClosedPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool := w.db.Pool(t)
	g := newGuard(t, pool, &txidem.Config{Consumer: consumer, Retry: txidem.RetryPolicy{MaxTime: time.Hour}})
	pool.Close()
	_, err := g.Process(t.Context(), "m", w.ok)
	require.ErrorContains(t, err, "closed pool")
	require.ErrorContains(t, g.Remember(t.Context(), "m"), "closed pool")
	w.requireCalls(0)
}
