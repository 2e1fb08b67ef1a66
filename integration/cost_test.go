package integration

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/internal/sqlgen"
	"github.com/txidem/txidem-go/txidem"
)

// The round trips of a delivery on a warm connection, counted on the wire: BEGIN and claim, the handler's statement,
// COMMIT. A duplicate takes the first, and one to look at the record and roll back.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	inModes(t, warmModes, func(t *testing.T, mode func(*pgxpool.Config)) {
		wire := &turns{}
		w := newWorld(t, mode, wire.through(t))
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

// A pipeline is one round trip, or two with callbacks; a duplicate is two in both cases, and costs the next delivery
// nothing: what was prepared stays prepared.
func TestRoundTripsOfAPipeline(t *testing.T) {
	t.Parallel()
	inModes(t, warmModes, func(t *testing.T, mode func(*pgxpool.Config)) {
		wire := &turns{}
		w := newWorld(t, mode, wire.through(t))
		returning := func(_ context.Context, b *pgx.Batch) error {
			b.Queue(`INSERT INTO biz (v) VALUES ($1) RETURNING v`, "ok").
				QueryRow(func(row pgx.Row) error { return row.Scan(new(string)) })
			return nil
		}
		for name, fn := range map[string]txidem.PipelineHandler{"statements": w.queueOne, "callback": returning} {
			first := map[string]int{"statements": 1, "callback": 2}[name]
			w.requirePipeline(txidem.Processed, name, fn)
			for _, id := range []string{"m", "n"} {
				id += name
				require.Equal(t, first, wire.during(func() { w.requirePipeline(txidem.Processed, id, fn) }), name)
				require.Equal(t, 2, wire.during(func() { w.requirePipeline(txidem.Duplicate, id, fn) }), "%s, duplicate", name)
			}
		}
	})
}

// A batch takes the round trips of one delivery, however many messages it has, and one more when some are duplicates.
func TestRoundTripsOfABatch(t *testing.T) {
	t.Parallel()
	wire := &turns{}
	w := newWorld(t, wire.through(t))
	messages := func(from, to int) []string { return numbered("m%03d", to)[from:] }
	deliver := func(ids []string) func() { return func() { w.deliverBatch(w.insertAll, ids) } }
	deliver([]string{"warm"})()
	deliver([]string{"warm", "warm too"})()
	deliver([]string{"warm", "warm too"})()
	require.Equal(t, 3, wire.during(deliver(messages(0, 100))), "new messages")
	require.Equal(t, 2, wire.during(deliver(messages(0, 100))), "duplicates")
	require.Equal(t, 4, wire.during(deliver(messages(50, 150))), "some of each")
	require.Equal(t, 152, w.count(`SELECT count(*) FROM biz`))
}

// A joined claim costs one round trip, and a duplicate in it two.
func TestRoundTripsOfAJoinedClaim(t *testing.T) {
	t.Parallel()
	wire := &turns{}
	w := newWorld(t, wire.through(t))
	tx := w.begin()
	w.requireClaim(txidem.Claimed, tx, "warm")
	requireAlreadyClaimed(t, w.guard, tx, "warm")
	require.NoError(t, tx.Commit(t.Context()))
	tx = w.begin()
	require.Equal(t, 1, wire.during(func() { w.requireClaim(txidem.Claimed, tx, "m") }))
	require.Equal(t, 2, wire.during(func() { w.requireClaim(txidem.Duplicate, tx, "warm") }))
	require.NoError(t, tx.Rollback(t.Context()))
}

// A duplicate writes nothing: no WAL and no transaction id. The statements are those of a delivery; the
// claim runs under EXPLAIN, since the cluster's own counters see the other tests too. It is the second duplicate that
// counts: the first reader of a page after a checkpoint may log a hint where data checksums are on.
func TestDuplicateWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireOutcome(txidem.Duplicate, "m", w.ok)
	w.requirePipeline(txidem.Duplicate, "m", w.queueOne)
	tx := w.begin()
	require.Equal(t, 0, walBytes(t, tx, recordSQL.Claim, "m", consumer))
	require.Equal(t, 0, walBytes(t, tx, recordSQL.ClaimMany, []string{"m"}, consumer))
	_, err := tx.Exec(t.Context(), recordSQL.Look, "m", consumer)
	require.NoError(t, err)
	savepoint, err := tx.Begin(t.Context())
	require.NoError(t, err)
	_, err = savepoint.Exec(t.Context(), recordSQL.Pipeline, "m", consumer, "5000ms", "5min")
	require.ErrorContains(t, err, sqlgen.NotClaimedText)
	require.NoError(t, savepoint.Rollback(t.Context()))
	var xid *string
	require.NoError(t, tx.QueryRow(t.Context(), `SELECT pg_current_xact_id_if_assigned()::text`).Scan(&xid))
	require.Nil(t, xid, "no transaction id")
	require.Positive(t, walBytes(t, tx, recordSQL.Claim, "fresh", consumer), "the same look sees what a first claim writes")
	require.NoError(t, tx.Rollback(t.Context()))
}

// What a claim of a 36-character id by a 16-character consumer writes between checkpoints. The first change of a page
// after a checkpoint logs the page as well, so the least of several claims counts.
func TestClaimWAL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tx := w.begin()
	for name, claim := range map[string]string{"Process": recordSQL.Claim, "Pipeline": recordSQL.Pipeline} {
		least := math.MaxInt
		for range 20 {
			least = min(least, walBytes(t, tx, claim, uuid(), "0123456789abcdef"))
		}
		t.Logf("%s: %d WAL bytes", name, least)
		require.LessOrEqual(t, least, 340, name)
		require.Positive(t, least, name)
	}
	require.NoError(t, tx.Rollback(t.Context()))
}

func uuid() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

var recordSQL = sqlgen.New(sqlgen.DefaultSchema, sqlgen.DefaultTable)

// walBytes runs a claim under EXPLAIN and returns the WAL bytes that it wrote, full-page images included.
func walBytes(t *testing.T, tx pgx.Tx, claim string, ids any, consumer string) int {
	t.Helper()
	var plan []byte
	err := tx.QueryRow(t.Context(), `EXPLAIN (ANALYZE, WAL, FORMAT JSON) `+claim, ids, consumer, "5000ms", "5min").Scan(&plan)
	require.NoError(t, err)
	var statements []struct {
		Plan map[string]any
	}
	require.NoError(t, json.Unmarshal(plan, &statements))
	bytes, found := statements[0].Plan["WAL Bytes"].(float64)
	require.True(t, found, "%s", plan)
	return int(bytes)
}
