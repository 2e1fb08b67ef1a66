package integration

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// begin starts a transaction of the caller's own.
func (w *world) begin() pgx.Tx {
	w.t.Helper()
	tx, err := w.pool.Begin(w.t.Context())
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = tx.Rollback(w.t.Context()) })
	return tx
}

func (w *world) requireClaim(want txidem.Outcome, tx pgx.Tx, id string) {
	w.t.Helper()
	got, err := w.guard.ClaimTx(w.t.Context(), tx, id)
	require.NoError(w.t, err)
	require.Equal(w.t, want.String(), got.String())
}

// Claim and work in the caller's transaction stand or fall together.
func TestJoinedClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tx := w.begin()
	w.requireClaim(txidem.Claimed, tx, "m")
	require.NoError(t, w.ok(t.Context(), tx))
	require.NoError(t, tx.Rollback(t.Context()))
	w.requireEffects(0)

	tx = w.begin()
	w.requireClaim(txidem.Claimed, tx, "m")
	require.NoError(t, w.ok(t.Context(), tx))
	require.NoError(t, tx.Commit(t.Context()))
	w.requireOutcome(txidem.Duplicate, "m", w.ok)
	w.requireEffects(1)

	tx = w.begin()
	w.requireClaim(txidem.Unguarded, tx, "")
	require.NoError(t, tx.Commit(t.Context()))
	w.requireEffects(1)
}

// After a duplicate the caller goes on working in its transaction, with its own lock_timeout.
func TestCallerGoesOnAfterAJoinedDuplicate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.requireOutcome(txidem.Processed, "m", w.ok)
	for _, own := range []string{"0", "1234ms"} {
		tx := w.begin()
		_, err := tx.Exec(t.Context(), `SET LOCAL lock_timeout = '`+own+`'`)
		require.NoError(t, err)
		for _, id := range []string{"fresh-" + own, "m"} {
			_, err := w.guard.ClaimTx(t.Context(), tx, id)
			require.NoError(t, err)
			var inside string
			require.NoError(t, tx.QueryRow(t.Context(), `SHOW lock_timeout`).Scan(&inside))
			require.Equal(t, own, inside, id)
		}
		require.NoError(t, w.ok(t.Context(), tx))
		require.NoError(t, tx.Commit(t.Context()))
	}
	w.requireEffects(3)
}

// A guard inside a guard's own transaction is a mistake and never a duplicate, wherever the two claims were made.
func TestAlreadyClaimed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	same := newGuard(t, w.pool, &txidem.Config{Consumer: consumer})
	_, err := w.guard.Process(t.Context(), "m", func(_ context.Context, tx pgx.Tx) error {
		_, err := same.ClaimTx(t.Context(), tx, "m")
		return err
	})
	require.ErrorIs(t, err, txidem.ErrAlreadyClaimed)
	require.False(t, txidem.Retryable(err))
	w.requireEffects(0)

	tx := w.begin()
	w.requireClaim(txidem.Claimed, tx, "m")
	sp, err := tx.Begin(t.Context())
	require.NoError(t, err)
	requireAlreadyClaimed(t, w.guard, sp, "m")
	w.requireClaim(txidem.Claimed, sp, "n") // this row belongs to the savepoint's own transaction id
	requireAlreadyClaimed(t, w.guard, sp, "n")
	require.NoError(t, sp.Commit(t.Context()))
	requireAlreadyClaimed(t, w.guard, tx, "n")

	sp, err = tx.Begin(t.Context())
	require.NoError(t, err)
	w.requireClaim(txidem.Claimed, sp, "o")
	require.NoError(t, sp.Rollback(t.Context()))
	w.requireClaim(txidem.Claimed, tx, "o") // rolled back with its savepoint, so free again
	require.NoError(t, tx.Rollback(t.Context()))
	w.requireEffects(0)
}

func requireAlreadyClaimed(t *testing.T, g *txidem.Guard, tx pgx.Tx, id string) {
	t.Helper()
	_, err := g.ClaimTx(t.Context(), tx, id)
	require.ErrorIs(t, err, txidem.ErrAlreadyClaimed, id)
}

// A record that another transaction committed is a duplicate even when both transactions began in the same microsecond,
// which makes their records look alike: the row's transaction decides, not its time.
func TestSameMicrosecondIsADuplicate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tx := w.begin()
	var now time.Time
	require.NoError(t, tx.QueryRow(t.Context(), `SELECT now()`).Scan(&now))
	w.exec(`INSERT INTO txidem_messages VALUES ('m', $1, $2)`, consumer, now)
	w.requireClaim(txidem.Duplicate, tx, "m")
	require.NoError(t, tx.Rollback(t.Context()))
	w.db.Invariant(t)
}

// A joined claim waits for a copy in flight, and its wait is bounded.
func TestJoinedClaimWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inFlightWait(time.Minute))
	first := w.hold(w.guard, "m")
	short := newGuard(t, w.pool, &txidem.Config{Consumer: consumer, InFlightWait: 20 * time.Millisecond})
	tx := w.begin()
	_, err := short.ClaimTx(t.Context(), tx, "m")
	require.ErrorIs(t, err, txidem.ErrInFlight)
	require.NoError(t, tx.Rollback(t.Context()))

	tx = w.begin()
	type result struct {
		outcome txidem.Outcome
		err     error
	}
	waiter := make(chan result, 1)
	go func() {
		outcome, err := w.guard.ClaimTx(t.Context(), tx, "m")
		waiter <- result{outcome, err}
	}()
	w.waitForLockWaiters(1)
	first.end(nil)
	require.Equal(t, result{txidem.Duplicate, nil}, <-waiter)
	require.NoError(t, tx.Rollback(t.Context()))
	w.requireEffects(1)
}
