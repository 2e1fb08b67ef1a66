package integration

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

func itself(id string) string { return id }

// numbered makes n messages, which are their own ids.
func numbered(format string, n int) []string {
	msgs := make([]string, n)
	for i := range msgs {
		msgs[i] = fmt.Sprintf(format, i)
	}
	return msgs
}

// insertAll is the ordinary handler of a batch: a row for each new message.
func (w *world) insertAll(ctx context.Context, tx pgx.Tx, fresh []string) error {
	w.calls.Add(1)
	_, err := tx.Exec(ctx, `INSERT INTO biz (v) SELECT unnest($1::text[])`, fresh)
	return err
}

// errPoison is what poisoned returns.
var errPoison = errors.New("poison")

// poisoned makes a handler that fails when one of the messages is among ids.
func (w *world) poisoned(ids ...string) func(context.Context, pgx.Tx, []string) error {
	return func(ctx context.Context, tx pgx.Tx, fresh []string) error {
		if err := w.insertAll(ctx, tx, fresh); err != nil {
			return err
		}
		for _, id := range fresh {
			if slices.Contains(ids, id) {
				return fmt.Errorf("%w: %s", errPoison, id)
			}
		}
		return nil
	}
}

// deliverBatch delivers messages, which are their own ids, and returns what became of each, in short.
func (w *world) deliverBatch(
	h func(context.Context, pgx.Tx, []string) error, msgs []string, opts ...txidem.BatchOption,
) []string {
	w.t.Helper()
	var all []string
	results := txidem.WrapBatch(w.guard, itself, h, opts...)(w.t.Context(), msgs)
	require.Len(w.t, results, len(msgs))
	for i, r := range results {
		require.Equal(w.t, msgs[i], r.ID)
		if r.Err != nil {
			require.Zero(w.t, r.Outcome)
			all = append(all, r.Err.Error())
			continue
		}
		all = append(all, r.Outcome.String())
	}
	return all
}

func TestBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.requireOutcome(txidem.Processed, "b", w.ok)
	require.Equal(t, []string{"processed", "duplicate", "processed", "duplicate", "unguarded", "duplicate", "unguarded"},
		w.deliverBatch(w.insertAll, []string{"c", "b", "a", "b", "", "c", ""}))
	require.Equal(t, 5, w.count(`SELECT count(*) FROM biz`))
	require.Equal(t, 3, w.count(`SELECT count(*) FROM txidem_messages`))
	require.Equal(t, []string{"duplicate", "duplicate"}, w.deliverBatch(w.insertAll, []string{"c", "a"}))
	require.Empty(t, w.deliverBatch(w.insertAll, nil))
	w.requireCalls(2)
	w.db.Invariant(t)
}

func TestBatchWithFailingMessages(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]txidem.BatchOption{"halves": nil, "savepoints": {txidem.WithSavepoints()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var msgs, want []string
			for i := range 37 {
				msgs = append(msgs, fmt.Sprintf("m%02d", 36-i))
				want = append(want, "processed")
			}
			want[3], want[20], want[21] = "poison: m33", "poison: m16", "poison: m15"
			msgs, want = append(msgs, "m16", "a\x00", "m01"), append(want, "poison: m16",
				`txidem: invalid message id: id "a\x00" contains a NUL byte, which PostgreSQL text cannot hold: `+
					`fix the producer, or route the message to a dead letter queue`, "duplicate")
			require.Equal(t, want, w.deliverBatch(w.poisoned("m33", "m16", "m15"), msgs, opts...))
			w.requireEffects(34)
			require.Equal(t, []string{"processed"}, w.deliverBatch(w.insertAll, []string{"m33"}), "its id is free")
		})
	}
}

// The observer is told how often the handler was called with a message, also where it was not called with all that were
// claimed with it.
func TestAttemptsInABatch(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]txidem.BatchOption{"halves": nil, "savepoints": {txidem.WithSavepoints()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			calls := map[string]int{}
			w.deliverBatch(func(ctx context.Context, tx pgx.Tx, fresh []string) error {
				for _, id := range fresh {
					calls[id]++
				}
				if calls["b"] == 2 && len(fresh) == 1 && fresh[0] == "b" {
					return raise(ctx, tx, "40001") // the messages after it are not run in this attempt
				}
				return w.poisoned("c")(ctx, tx, fresh)
			}, []string{"a", "b", "c", "d"}, opts...)
			for _, e := range w.told.list() {
				require.Equal(t, calls[e.ID], e.Attempts, e.ID)
			}
			w.requireEffects(3)
		})
	}
}

// A copy in flight costs the others one wait, and only its message ErrInFlight.
func TestBatchWithACopyInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inFlightWait(100*time.Millisecond))
	held := w.hold(w.guard, "c")
	results := txidem.WrapBatch(w.guard, itself, w.insertAll)(t.Context(), []string{"a", "b", "c", "d", "e"})
	for _, r := range results {
		if r.ID == "c" {
			require.ErrorIs(t, r.Err, txidem.ErrInFlight)
			require.ErrorContains(t, r.Err, `id "c"`)
			continue
		}
		require.NoError(t, r.Err, r.ID)
		require.Equal(t, txidem.Processed, r.Outcome)
	}
	held.end(nil)
	require.NoError(t, held.err)
	w.requireEffects(5)
}

// Two workers get the same messages in opposite order.
func TestBatchesInOppositeOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	msgs := numbered("m%02d", 50)
	back := slices.Clone(msgs)
	slices.Reverse(back)
	done := make(chan []txidem.Result)
	for _, order := range [][]string{msgs, back} {
		go func() { done <- txidem.WrapBatch(w.guard, itself, w.insertAll)(t.Context(), order) }()
	}
	for _, r := range append(<-done, <-done...) {
		require.NoError(t, r.Err)
	}
	w.requireEffects(50)
}

// A large batch is one transaction, and its memory is a small multiple of its ids'. The test is not parallel: what the
// whole process allocates is counted.
func TestLargeBatch(t *testing.T) {
	w := newWorld(t, func(c *txidem.Config) { c.Observer = nil })
	msgs := numbered("%036d", 100_000)
	deliver := txidem.WrapBatch(w.guard, itself, w.insertAll)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	results := deliver(t.Context(), msgs)
	runtime.ReadMemStats(&after)
	for _, r := range results {
		require.NoError(t, r.Err)
	}
	w.requireCalls(1)
	w.requireEffects(len(msgs))
	perMessage := (after.TotalAlloc - before.TotalAlloc) / uint64(len(msgs))
	t.Logf("%d bytes allocated for each message", perMessage)
	require.Less(t, perMessage, uint64(2000), "bytes for each message")
}

// One failing message of n is found in about 2·log2(n) transactions.
func TestOneFailingMessageIsFoundByHalving(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	msgs := numbered("m%04d", 1024)
	for i, outcome := range w.deliverBatch(w.poisoned("m0700"), msgs) {
		if i == 700 {
			require.Equal(t, "poison: m0700", outcome)
			continue
		}
		require.Equal(t, "processed", outcome)
	}
	w.requireCalls(1 + 2*10)
	w.requireEffects(1023)
}
