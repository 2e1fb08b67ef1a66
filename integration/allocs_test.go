package integration

import (
	"context"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// What a delivery allocates on the client, around a handler of one statement, on a warm connection. The race
// detector allocates too, so these tests are for a build without it.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates: make test/integration runs this without it too")
	}
	w := newWorld(t, func(c *txidem.Config) { c.Observer = nil })
	ctx := context.Background()
	insert := func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO biz (v) VALUES ($1)`, "ok")
		return err
	}
	queue := func(_ context.Context, b *pgx.Batch) error {
		b.Queue(`INSERT INTO biz (v) VALUES ($1)`, "ok")
		return nil
	}
	for name, tc := range map[string]struct {
		limit float64
		run   func(id string) error
	}{
		"plain": {10, func(string) error {
			return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error { return insert(ctx, tx) })
		}},
		"Process": {30, func(id string) error {
			_, err := w.guard.Process(ctx, id, insert)
			return err
		}},
		"Pipeline": {26, func(id string) error {
			_, err := w.guard.Pipeline(ctx, id, queue)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			const runs = 300
			ids := make([]string, runs+2)
			for i := range ids {
				ids[i] = name + strconv.Itoa(i)
			}
			next := 0
			allocs := testing.AllocsPerRun(runs, func() {
				require.NoError(t, tc.run(ids[next]))
				next++
			})
			t.Logf("%s: %.0f allocations", name, allocs)
			require.LessOrEqual(t, allocs, tc.limit)
		})
	}
}
