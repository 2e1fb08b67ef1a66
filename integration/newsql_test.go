package integration

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

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
			require.NoError(t, g.Check(t.Context()))
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
