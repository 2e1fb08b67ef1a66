package integration

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// A guard inside a guard, with the context of the handler and the same message: an error at once, by whatever way, and not
// a wait for itself.
func TestGuardInAGuard(t *testing.T) {
	t.Parallel()
	for name, inner := range map[string]func(w *world, ctx context.Context, tx pgx.Tx) error{
		"Process": func(w *world, ctx context.Context, _ pgx.Tx) error {
			_, err := w.guard.Process(ctx, "m", w.ok)
			return err
		},
		"another guard, another pool": func(w *world, ctx context.Context, _ pgx.Tx) error {
			_, err := newGuard(w.t, w.db.Pool(w.t), &txidem.Config{Consumer: consumer}).Process(ctx, "m", w.ok)
			return err
		},
		"Pipeline": func(w *world, ctx context.Context, _ pgx.Tx) error {
			_, err := w.guard.Pipeline(ctx, "m", w.queueOne)
			return err
		},
		"ProcessBatch": func(w *world, ctx context.Context, _ pgx.Tx) error {
			return w.guard.ProcessBatch(ctx, []string{"m"}, func(context.Context, pgx.Tx, []int) error { return nil })[0].Err
		},
		"ClaimTx, its own transaction": func(w *world, ctx context.Context, tx pgx.Tx) error {
			_, err := w.guard.ClaimTx(ctx, tx, "m")
			return err
		},
		"ClaimTx, another transaction": func(w *world, ctx context.Context, _ pgx.Tx) error {
			return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error { _, err := w.guard.ClaimTx(ctx, tx, "m"); return err })
		},
		"ClaimSQL": func(w *world, ctx context.Context, _ pgx.Tx) error {
			return openSQL(w.t, w.openSQL(sqlDrivers["pgx"]))(ctx, func(tx sqlTx) error {
				_, err := w.guard.ClaimSQL(ctx, tx, "m")
				return err
			})
		},
		"Remember": func(w *world, ctx context.Context, _ pgx.Tx) error { return w.guard.Remember(ctx, "m") },
		"Forget":   func(w *world, ctx context.Context, _ pgx.Tx) error { return w.guard.Forget(ctx, "m") },
		"a context made from it": func(w *world, ctx context.Context, _ pgx.Tx) error {
			ctx, cancel := context.WithTimeout(ctx, stateLimit)
			defer cancel()
			_, err := w.guard.Process(ctx, "m", w.ok)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, inFlightWait(time.Hour))
			requireNested := func(ctx context.Context, tx pgx.Tx) error {
				err := inner(w, ctx, tx)
				require.ErrorIs(t, err, txidem.ErrAlreadyClaimed)
				require.ErrorIs(t, err, txidem.ErrMisuse)
				require.False(t, txidem.Retryable(err))
				_, err = tx.Exec(ctx, `INSERT INTO biz (v) VALUES ('outer')`)
				return err
			}
			w.requireOutcome(txidem.Processed, "m", requireNested)
			results := w.guard.ProcessBatch(t.Context(), []string{"a", "x"}, func(ctx context.Context, tx pgx.Tx, fresh []int) error {
				_, err := w.guard.Process(ctx, "a", w.ok)
				require.ErrorIs(t, err, txidem.ErrAlreadyClaimed)
				_, err = tx.Exec(ctx, `INSERT INTO biz (v) SELECT unnest($1::int[])::text`, fresh)
				return err
			})
			require.NoError(t, results[0].Err)
			require.NoError(t, results[1].Err)
			w.requireCalls(0)
			w.requireEffects(3)
		})
	}
}

// What is not the same message is not refused: another id, consumer or table, and any message once the handler is done.
func TestGuardInAGuardOfAnotherMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := newGuard(t, w.pool, &txidem.Config{Consumer: "another"})
	var kept context.Context
	w.requireOutcome(txidem.Processed, "m", func(ctx context.Context, tx pgx.Tx) error {
		kept = ctx
		_, err := w.guard.Process(ctx, "n", w.ok)
		require.NoError(t, err)
		_, err = other.Process(ctx, "m", w.ok)
		require.NoError(t, err)
		return w.ok(ctx, tx)
	})
	outcome, err := w.guard.Process(kept, "m", w.ok)
	require.NoError(t, err)
	require.Equal(t, txidem.Duplicate, outcome)
	w.requireEffects(3)
}

// A handler that needs a second connection of a pool that has no more gets its deadline, and is told why.
func TestGuardInAGuardWithoutAConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conns(1))
	_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, _ pgx.Tx) error {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, err := w.guard.Process(ctx, "n", w.ok)
		return err
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "the handler that this was called in has a connection of the pool")
	w.requireEffects(0)
}
