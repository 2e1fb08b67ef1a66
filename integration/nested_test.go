package integration

import (
	"context"
	"database/sql"
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

// A Guard of database/sql claims, remembers and forgets, in the same records, and says of the rest why not.
func TestGuardOfDatabaseSQL(t *testing.T) {
	t.Parallel()
	for driver, open := range sqlDrivers {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			db := w.openSQL(open)
			g, err := txidem.NewSQL(db, &txidem.Config{Consumer: consumer, InFlightWait: 100 * time.Millisecond})
			require.NoError(t, err)
			w.claimByDatabaseSQL(g, openSQL(t, db))
			w.requireSeenSet(g)
			_, err = g.Process(t.Context(), "m", w.ok)
			require.ErrorContains(t, err, "NewSQL")
			_, err = g.Pipeline(t.Context(), "m", w.queueOne)
			require.ErrorContains(t, err, "NewSQL")
			require.ErrorContains(t, txidem.WrapBatch(g, itself, w.insertAll)(t.Context(), []string{"m"})[0].Err, "NewSQL")
			w.db.Invariant(t)
		})
	}
	_, err := txidem.NewSQL(nil, &txidem.Config{Consumer: consumer})
	require.ErrorContains(t, err, "needs a *sql.DB")
	var configErr *txidem.ConfigError
	_, err = txidem.NewSQL(new(sql.DB), nil)
	require.ErrorAs(t, err, &configErr)
}

func (w *world) claimByDatabaseSQL(g *txidem.Guard, inTx func(context.Context, func(sqlTx) error) error) {
	w.t.Helper()
	for _, want := range []txidem.Outcome{txidem.Claimed, txidem.Duplicate} {
		require.NoError(w.t, inTx(w.t.Context(), func(tx sqlTx) error {
			outcome, err := g.ClaimSQL(w.t.Context(), tx, "m")
			require.Equal(w.t, want, outcome)
			return err
		}))
	}
	w.requireOutcome(txidem.Duplicate, "m", w.ok)
}

// requireSeenSet asserts what the three methods say of each other, and of a copy in flight.
func (w *world) requireSeenSet(g *txidem.Guard) {
	w.t.Helper()
	ctx := w.t.Context()
	seen := func(id string) bool {
		yes, err := g.Seen(ctx, id)
		require.NoError(w.t, err)
		return yes
	}
	require.True(w.t, seen("m"))
	require.NoError(w.t, g.Forget(ctx, "m"))
	require.False(w.t, seen("m"))
	require.NoError(w.t, g.Forget(ctx, "m"), "what is not there")
	require.NoError(w.t, g.Remember(ctx, "n"))
	require.NoError(w.t, g.Remember(ctx, "n"))
	require.True(w.t, seen("n"))
	held := w.hold(w.guard, "o")
	require.False(w.t, seen("o"))
	require.ErrorIs(w.t, g.Remember(ctx, "o"), txidem.ErrInFlight)
	require.ErrorIs(w.t, g.Forget(ctx, "o"), txidem.ErrInFlight)
	held.end(nil)
	require.True(w.t, seen("o"))
	require.Equal(w.t, 2, w.count(`SELECT count(*) FROM txidem_messages`))
}
