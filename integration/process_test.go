package integration

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// A first delivery that failed leaves nothing behind, the second counts, the third is a duplicate.
func TestFailedFirstAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
		require.NoError(t, w.ok(ctx, tx))
		return io.ErrNoProgress
	})
	require.Equal(t, io.ErrNoProgress, err, "the handler's error comes back as it is")
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireOutcome(txidem.Duplicate, "m", w.ok)
	w.requireCalls(2)
	w.requireEffects(1)
}

// The same with the guard as a seen-set: a failed message is not remembered.
func TestFailedFirstAttemptInTheSeenSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result := io.ErrNoProgress
	deliver := txidem.WrapSeen(w.guard, func(id string) string { return id }, func(ctx context.Context, _ string) error {
		if result != nil {
			w.calls.Add(1)
			return result
		}
		return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error { return w.ok(ctx, tx) })
	})
	require.Equal(t, io.ErrNoProgress, deliver(t.Context(), "m"))
	result = nil
	require.NoError(t, deliver(t.Context(), "m"))
	require.NoError(t, deliver(t.Context(), "m"))
	w.requireCalls(2)
	w.requireEffects(1)
}

// Without its table every verb fails with ErrNoTable and no handler runs; when the table is back, so is the delivery.
func TestFailedClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.requireOutcome(txidem.Processed, "before", w.ok) // the claim is a prepared statement by now
	w.exec(`ALTER TABLE txidem_messages RENAME TO away`)
	seen := txidem.WrapSeen(w.guard, func(id string) string { return id }, func(context.Context, string) error {
		t.Error("the handler ran without a look")
		return nil
	})
	for name, err := range map[string]error{
		"Process":  second(w.process("m")),
		"WrapSeen": seen(t.Context(), "m"),
		"Remember": w.guard.Remember(t.Context(), "m"),
		"Forget":   w.guard.Forget(t.Context(), "m"),
		"Seen":     second(w.guard.Seen(t.Context(), "m")),
		"Check":    w.guard.Check(t.Context()),
	} {
		require.ErrorIs(t, err, txidem.ErrNoTable, name)
		require.ErrorContains(t, err, "apply the migrations", name)
		require.True(t, txidem.Retryable(err), name)
	}
	w.requireCalls(1)
	w.exec(`ALTER TABLE away RENAME TO txidem_messages`)
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireOutcome(txidem.Duplicate, "m", w.ok)
	w.requireEffects(2)
}

func second[T any](_ T, err error) error { return err }

// A handler that hides a failed statement is not acked, in whichever way it hid it, and nothing is stored.
func TestHiddenSQLError(t *testing.T) {
	t.Parallel()
	hide := map[string]txidem.Handler{
		"exec": func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, `SELECT 1/0`)
			return nil
		},
		"query": func(ctx context.Context, tx pgx.Tx) error {
			var n int
			_ = tx.QueryRow(ctx, `SELECT 1/0`).Scan(&n)
			return nil
		},
		"batch": func(ctx context.Context, tx pgx.Tx) error {
			b := &pgx.Batch{}
			b.Queue(`SELECT 1/0`)
			_ = tx.SendBatch(ctx, b).Close()
			return nil
		},
		"savepoint left": func(ctx context.Context, tx pgx.Tx) error {
			sp, err := tx.Begin(ctx)
			require.NoError(t, err)
			_, _ = sp.Exec(ctx, `SELECT 1/0`)
			return nil
		},
	}
	for name, handler := range hide {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
				require.NoError(t, w.ok(ctx, tx))
				return handler(ctx, tx)
			})
			require.ErrorIs(t, err, txidem.ErrTxAborted)
			require.ErrorContains(t, err, "returned nil")
			w.requireEffects(0)
			w.requireOutcome(txidem.Processed, "m", w.ok)
			w.requireEffects(1)
		})
	}
}

// A failed statement that is rolled back to a savepoint is no failure of the delivery.
func TestErrorInsideASavepoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.requireOutcome(txidem.Processed, "m", func(ctx context.Context, tx pgx.Tx) error {
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SELECT 1/0`)
			return err
		})
		require.Error(t, err)
		return w.ok(ctx, tx)
	})
	w.requireEffects(1)
}

// A handler that panics, also with a query open, or calls Goexit: nothing is stored, the panic reaches the caller with its
// own value, and the next delivery runs.
func TestHandlerThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	leave := map[string]func(ctx context.Context, tx pgx.Tx){
		"panic":  func(context.Context, pgx.Tx) { panic("its own value") },
		"goexit": func(context.Context, pgx.Tx) { runtime.Goexit() },
		"panic with rows open": func(ctx context.Context, tx pgx.Tx) {
			rows, err := tx.Query(ctx, `SELECT generate_series(1, 100000)`)
			require.NoError(t, err)
			require.True(t, rows.Next())
			panic("its own value")
		},
	}
	for name, leave := range leave {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var value any
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { value = recover() }()
				_, _ = w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
					require.NoError(t, w.ok(ctx, tx))
					leave(ctx, tx)
					return nil
				})
			}()
			<-done
			if name != "goexit" {
				require.Equal(t, "its own value", value)
			}
			told := w.told.list()
			require.Len(t, told, 1)
			require.ErrorContains(t, told[0].Err, "panicked")
			w.requireEffects(0)
			w.requireOutcome(txidem.Processed, "m", w.ok)
			w.requireEffects(1)
		})
	}
}

// A pool of one connection is enough for everything that a guard does, one call after the other.
func TestOneConnectionIsEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conns(1))
	require.NoError(t, w.guard.Check(t.Context()))
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireOutcome(txidem.Duplicate, "m", w.ok)
	_, err := w.guard.Process(t.Context(), "n", func(context.Context, pgx.Tx) error { return io.EOF })
	require.Equal(t, io.EOF, err)
	require.NoError(t, w.guard.Forget(t.Context(), "m"))
	require.NoError(t, w.guard.Remember(t.Context(), "m"))
	seen, err := w.guard.Seen(t.Context(), "m")
	require.NoError(t, err)
	require.True(t, seen)
	w.requireOutcome(txidem.Duplicate, "m", w.ok)
	w.requireEffects(1)
}

// A handler that uses a pool of one connection beside its transaction waits for a connection that cannot come: it gets
// its deadline, and nothing is stored.
func TestHandlerThatUsesThePool(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conns(1))
	_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
		require.NoError(t, w.ok(ctx, tx))
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		_, err := w.pool.Exec(ctx, `INSERT INTO biz (v) VALUES ('beside')`)
		return err
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	w.requireEffects(0)
}

// A record belongs to one consumer.
func TestTwoConsumers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := newGuard(t, w.pool, &txidem.Config{Consumer: "email"})
	w.requireOutcome(txidem.Processed, "m", w.ok)
	outcome, err := other.Process(t.Context(), "m", w.ok)
	require.NoError(t, err)
	require.Equal(t, txidem.Processed, outcome)

	require.NoError(t, w.guard.Forget(t.Context(), "m"))
	seen, err := other.Seen(t.Context(), "m")
	require.NoError(t, err)
	require.True(t, seen, "Forget for one consumer leaves the other's record")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM txidem_messages`))
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireCalls(3)
	w.db.Invariant(t)
}

// A message with an empty id runs every time and makes no record; a guard with RequireID refuses it.
func TestEmptyIDRunsUnguarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.requireOutcome(txidem.Unguarded, "", w.ok)
	w.requireOutcome(txidem.Unguarded, "", w.ok)
	_, err := w.guard.Process(t.Context(), "", func(ctx context.Context, tx pgx.Tx) error {
		require.NoError(t, w.ok(ctx, tx))
		return io.EOF
	})
	require.Equal(t, io.EOF, err)
	require.Equal(t, 2, w.count(`SELECT count(*) FROM biz`), "an unguarded handler has its transaction all the same")
	require.Zero(t, w.count(`SELECT count(*) FROM txidem_messages`))
	w.db.Invariant(t)

	strict := newGuard(t, w.pool, &txidem.Config{Consumer: consumer, RequireID: true})
	_, err = strict.Process(t.Context(), "", w.ok)
	require.ErrorIs(t, err, txidem.ErrInvalidID)
	w.requireCalls(3)
}

// A duplicate is found without an error on the server: no statement of its delivery fails.
func TestDuplicateCausesNoError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.requireOutcome(txidem.Processed, "m", w.ok)
	tracer := &errorTracer{}
	pool := w.db.Pool(t, tracer.install)
	g := newGuard(t, pool, &txidem.Config{Consumer: consumer})
	for range 3 {
		outcome, err := g.Process(t.Context(), "m", w.ok)
		require.NoError(t, err)
		require.Equal(t, txidem.Duplicate, outcome)
	}
	require.Empty(t, tracer.errors(), "no statement failed")
	w.requireEffects(1)
}

// A constraint that fails at COMMIT is the handler's failure: an error, one call, nothing stored.
func TestConstraintThatFailsAtCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`CREATE TABLE late (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)`)
	_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
		require.NoError(t, w.ok(ctx, tx))
		_, err := tx.Exec(ctx, `INSERT INTO late VALUES (1), (1)`)
		return err
	})
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	require.Equal(t, "23505", pgErr.Code)
	require.False(t, errors.Is(err, txidem.ErrCommitUnknown), "the server said why")
	w.requireCalls(1)
	w.requireEffects(0)
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireEffects(1)
}

// A claim that finds neither a key nor a record is an error and never a duplicate.
func TestClaimThatMakesNoRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`)
	w.exec(`CREATE TRIGGER swallow BEFORE INSERT ON txidem_messages FOR EACH ROW EXECUTE FUNCTION swallow()`)
	_, err := w.process("m")
	require.ErrorIs(t, err, txidem.ErrNoRecord)
	require.ErrorIs(t, w.guard.Remember(t.Context(), "m"), txidem.ErrNoRecord)
	err = pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := w.guard.ClaimTx(t.Context(), tx, "m")
		return err
	})
	require.ErrorIs(t, err, txidem.ErrNoRecord)
	w.requireCalls(0)
	w.requireEffects(0)
}

// A row of a lease is in flight, in every mode.
func TestLeaseIsInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`INSERT INTO txidem_messages VALUES ('m', $1, NULL)`, consumer)
	_, processErr := w.process("m")
	joinErr := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := w.guard.ClaimTx(t.Context(), tx, "m")
		return err
	})
	seenErr := txidem.WrapSeen(w.guard, func(id string) string { return id }, func(context.Context, string) error {
		w.calls.Add(1)
		return nil
	})(t.Context(), "m")
	for name, err := range map[string]error{
		"Process": processErr, "ClaimTx": joinErr, "WrapSeen": seenErr,
		"Remember": w.guard.Remember(t.Context(), "m"),
		"Forget":   w.guard.Forget(t.Context(), "m"),
	} {
		require.ErrorIs(t, err, txidem.ErrInFlight, name)
		require.ErrorContains(t, err, "somebody holds it", name)
	}
	w.requireCalls(0)
	require.Equal(t, 1, w.count(`SELECT count(*) FROM txidem_messages WHERE processed_at IS NULL`), "the lease stays")
	w.db.Invariant(t)
}

// The observer is told once of each delivery, when the connection is back in the pool.
func TestObserverIsToldAfterTheConnectionIsReleased(t *testing.T) {
	t.Parallel()
	var acquired []int32
	w := newWorld(t, conns(1))
	g := newGuard(t, w.pool, &txidem.Config{Consumer: consumer, Observer: func(ctx context.Context, d txidem.DeliveryEvent) {
		acquired = append(acquired, w.pool.Stat().AcquiredConns())
		w.told.observe(ctx, d)
		panic("dropped")
	}})
	for range 2 {
		_, err := g.Process(t.Context(), "m", w.ok)
		require.NoError(t, err)
	}
	_, err := g.Process(t.Context(), "n", func(context.Context, pgx.Tx) error { return io.EOF })
	require.Equal(t, io.EOF, err)
	require.Equal(t, []int32{0, 0, 0}, acquired)
	told := w.told.list()
	require.Len(t, told, 3)
	require.Equal(t, txidem.Processed, told[0].Outcome)
	require.Equal(t, 1, told[0].Attempts)
	require.Equal(t, txidem.Duplicate, told[1].Outcome)
	require.Zero(t, told[1].Attempts)
	require.Equal(t, io.EOF, told[2].Err)
	for _, d := range told {
		require.Equal(t, consumer, d.Consumer)
		require.Positive(t, d.Claim)
		require.LessOrEqual(t, d.Claim+d.Handler, d.Total)
	}
}
