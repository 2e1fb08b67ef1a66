package integration

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// A context that ends while the handler runs costs the delivery, and not the connection.
func TestContextEndsInTheHandler(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conns(1))
	backend := w.count(`SELECT pg_backend_pid()`)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := w.guard.Process(ctx, "m", func(ctx context.Context, tx pgx.Tx) error {
		require.NoError(t, w.ok(ctx, tx))
		cancel()
		return ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, backend, w.count(`SELECT pg_backend_pid()`), "the connection survives")
	w.requireEffects(0)
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireEffects(1)
}

// The context is over when the handler returns nil: nothing is committed, and the next delivery runs.
func TestContextIsOverWhenTheHandlerReturnsNil(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conns(1))
	backend := w.count(`SELECT pg_backend_pid()`)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := w.guard.Process(ctx, "m", func(ctx context.Context, tx pgx.Tx) error {
		defer cancel()
		return w.ok(ctx, tx)
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, backend, w.count(`SELECT pg_backend_pid()`), "the connection survives")
	w.requireEffects(0)
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireEffects(1)
}

// A statement is cut off by a child context's deadline: the delivery fails and the next one runs, whether the handler
// passes the error on or hides it.
func TestStatementIsCutOff(t *testing.T) {
	t.Parallel()
	for name, hide := range map[string]bool{"passed on": false, "hidden": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
				require.NoError(t, w.ok(ctx, tx))
				short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
				_, err := tx.Exec(short, `SELECT pg_sleep(60)`)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				if hide {
					return nil
				}
				return err
			})
			require.Error(t, err)
			if !hide {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			w.requireEffects(0)
			w.requireOutcome(txidem.Processed, "m", w.ok)
			w.requireEffects(1)
		})
	}
}

// A context that is over before the delivery begins: nothing runs, in any mode.
func TestContextIsOverBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.guard.Process(ctx, "m", w.ok)
	require.ErrorIs(t, err, context.Canceled)
	_, err = w.guard.Process(ctx, "", w.ok)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, second(w.guard.Seen(ctx, "m")), context.Canceled)
	require.ErrorIs(t, w.guard.Remember(ctx, "m"), context.Canceled)
	require.ErrorIs(t, w.guard.Forget(ctx, "m"), context.Canceled)
	require.ErrorIs(t, w.guard.Check(ctx), context.Canceled)
	w.requireCalls(0)
	w.requireEffects(0)
}

// A context that ends while the claim waits for a copy in flight: its own error comes back, and nothing ran.
func TestContextEndsWhileTheClaimWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inFlightWait(time.Minute))
	first := w.hold(w.guard, "m")
	ctx, cancel := context.WithCancel(t.Context())
	waiter := make(chan error, 1)
	go func() { waiter <- second(w.guard.Process(ctx, "m", w.ok)) }()
	w.waitForLockWaiters(1)
	cancel()
	err := <-waiter
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, txidem.ErrInFlight)
	first.end(nil)
	w.requireCalls(1)
	w.requireEffects(1)
}
