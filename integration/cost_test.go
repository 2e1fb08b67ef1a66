package integration

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/internal/sqlgen"
	"github.com/txidem/txidem-go/txidem"
)

// The round trips of a delivery on a warm connection, counted on the wire: BEGIN and claim, the handler's statement,
// COMMIT. A duplicate takes the first, and one to look at the record and roll back.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			wire := &turns{}
			w := newWorld(t, execMode(mode), wire.through(t))
			w.requireOutcome(txidem.Processed, "warm", w.ok)
			w.requireOutcome(txidem.Duplicate, "warm", w.ok)
			plain := wire.during(func() {
				require.NoError(t, pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error { return w.ok(t.Context(), tx) }))
			})
			require.Equal(t, 3, plain, "a transaction without dedupe, for comparison")
			require.Equal(t, 3, wire.during(func() { w.requireOutcome(txidem.Processed, "m", w.ok) }))
			require.Equal(t, 2, wire.during(func() { w.requireOutcome(txidem.Duplicate, "m", w.ok) }))

			seenSet := txidem.WrapSeen(w.guard, func(id string) string { return id }, func(ctx context.Context, _ string) error {
				return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error { return w.ok(ctx, tx) })
			})
			require.NoError(t, seenSet(t.Context(), "warm seen-set"))
			require.Equal(t, 5, wire.during(func() { require.NoError(t, seenSet(t.Context(), "n")) }), "the seen-set, for comparison")
		})
	}
}

// A joined claim costs one round trip, and a duplicate in it two.
func TestRoundTripsOfAJoinedClaim(t *testing.T) {
	t.Parallel()
	wire := &turns{}
	w := newWorld(t, wire.through(t))
	tx := w.begin()
	w.requireClaim(txidem.Processed, tx, "warm")
	requireAlreadyClaimed(t, w.guard, tx, "warm")
	require.NoError(t, tx.Commit(t.Context()))
	tx = w.begin()
	require.Equal(t, 1, wire.during(func() { w.requireClaim(txidem.Processed, tx, "m") }))
	require.Equal(t, 2, wire.during(func() { w.requireClaim(txidem.Duplicate, tx, "warm") }))
	require.NoError(t, tx.Rollback(t.Context()))
}

// A duplicate writes nothing: no WAL and no transaction id. The statements are those of a delivery; the
// claim runs under EXPLAIN, since the cluster's own counters see the other tests too. It is the second duplicate that counts: the first
// reader of a page after a checkpoint may log a hint where data checksums are on.
func TestDuplicateWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireOutcome(txidem.Duplicate, "m", w.ok)
	tx := w.begin()
	require.Equal(t, 0, walBytes(t, tx, "m"))
	_, err := tx.Exec(t.Context(), sqlgen.New(sqlgen.DefaultSchema, sqlgen.DefaultTable).Look, "m", consumer)
	require.NoError(t, err)
	var xid *string
	require.NoError(t, tx.QueryRow(t.Context(), `SELECT pg_current_xact_id_if_assigned()::text`).Scan(&xid))
	require.Nil(t, xid, "no transaction id")
	require.Positive(t, walBytes(t, tx, "fresh"), "the same look sees what a first claim writes")
	require.NoError(t, tx.Rollback(t.Context()))
}

// walBytes runs the claim of id under EXPLAIN and returns the WAL bytes that it wrote, full-page images included.
func walBytes(t *testing.T, tx pgx.Tx, id string) int {
	t.Helper()
	claim := sqlgen.New(sqlgen.DefaultSchema, sqlgen.DefaultTable).Claim
	var plan []byte
	err := tx.QueryRow(t.Context(), `EXPLAIN (ANALYZE, WAL, FORMAT JSON) `+claim, id, consumer, "5000ms", "5min").Scan(&plan)
	require.NoError(t, err)
	var statements []struct {
		Plan map[string]any
	}
	require.NoError(t, json.Unmarshal(plan, &statements))
	bytes, found := statements[0].Plan["WAL Bytes"].(float64)
	require.True(t, found, "%s", plan)
	return int(bytes)
}
