package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/bench/cputime"
	"github.com/txidem/txidem-go/integration/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.Config{}) }

// tinyPlan has every part of a run.
func tinyPlan() plan {
	return plan{
		places: []place{asyncLoop, oneMilli}, workers: []int{1, 2},
		cell: time.Millisecond, slice: time.Millisecond,
		costs: 1, pings: 1, effortWorkers: []int{1, 2}, effortTurns: 2, effortSlice: time.Millisecond,
		duplicates: []float64{0.5}, hotCopies: 5, hotRounds: 1, hotTurn: 10 * time.Millisecond,
		tables: []int{0, 100}, claims: 3, afterChkpnt: 2,
	}
}

func newTestLab(t *testing.T) *lab {
	t.Helper()
	l, err := newLab(t.Context(), testdb.New(t).DSN(), t.Logf)
	require.NoError(t, err)
	t.Cleanup(l.close)
	return l
}

// The whole run, at a size that says nothing about times. A cell fails by itself when its tables do not hold what the
// contenders reported.
func TestRun(t *testing.T) {
	t.Parallel()
	l, p := newTestLab(t), tinyPlan()
	r, err := l.measure(t.Context(), p)
	require.NoError(t, err)
	require.Len(t, r.Cells, len(p.places)*len(p.workers)+2*len(p.duplicates))
	for _, c := range r.Cells {
		for _, f := range c.Figures {
			require.Positive(t, f.Deliveries, "%s: %s", c.Place.Name, f.Contender)
			require.Positive(t, f.PerSecond, "%s: %s", c.Place.Name, f.Contender)
		}
	}
	require.Len(t, r.Efforts, len(p.effortWorkers)*len(r.Costs))
	for _, e := range r.Efforts {
		require.Positive(t, e.PerSecond, e.Contender)
		require.Equal(t, e.Missing == "", e.Both.ok() && e.Both.value > 0, e.Contender)
	}
	require.Len(t, r.Claims, 2*2*len(p.tables), "two kinds of ids, two phases")
	require.Equal(t, p.hotCopies, r.Hot.Copies)
	requireMeasured(t, r.Targets)

	var text, markdown bytes.Buffer
	require.NoError(t, r.write(&text, false))
	require.NoError(t, r.write(&markdown, true))
	require.Contains(t, text.String(), "Targets")
	dir := t.TempDir()
	require.NoError(t, r.writeChart(filepath.Join(dir, "chart.svg")))
	require.NoError(t, r.writeJSON(filepath.Join(dir, "result.json")))
	written, err := os.ReadFile(filepath.Join(dir, "result.json"))
	require.NoError(t, err)
	require.True(t, json.Valid(written))
}

// requireMeasured asserts that the targets find their figures, all but those of what the tiny plan leaves out.
func requireMeasured(t *testing.T, targets []Target) {
	t.Helper()
	for _, g := range targets {
		switch {
		case strings.Contains(g.What, "16 workers"), strings.Contains(g.What, "10 M"):
			require.Equal(t, notInThisRun, g.verdict(), g.What)
		case strings.Contains(g.What, "processor time") && !g.Measured:
			require.Contains(t, g.verdict(), cputime.ErrNotMeasurable.Error(), g.What)
		default:
			require.True(t, g.Measured, g.What)
		}
	}
}

// Each contender alone: what it reports is what the tables hold, and the same ids again are duplicates to those that
// make records.
func TestContenders(t *testing.T) {
	t.Parallel()
	l := newTestLab(t)
	pool, err := l.pool(t.Context(), loopback, 2, nil)
	require.NoError(t, err)
	defer pool.Close()
	c, err := newClient(pool)
	require.NoError(t, err)
	for _, contender := range c.contenders() {
		t.Run(contender.name, func(t *testing.T) { requireCounted(t, l, contender) })
	}
}

func requireCounted(t *testing.T, l *lab, c contender) {
	t.Helper()
	_, err := l.fresh(t.Context(), 0)
	require.NoError(t, err)
	ids := source{}.take(c.batch)
	got, err := c.deliver(t.Context(), ids)
	require.NoError(t, err)
	require.Equal(t, tally{processed: c.batch}, got)
	if !c.records {
		require.NoError(t, l.audit(t.Context(), c.batch, 0))
		return
	}
	require.NoError(t, l.audit(t.Context(), c.batch, c.batch))
	require.Error(t, l.audit(t.Context(), c.batch, c.batch+1), "an audit that cannot fail proves nothing")
	got, err = c.deliver(t.Context(), ids)
	require.NoError(t, err)
	require.Equal(t, tally{duplicates: c.batch}, got)
	require.NoError(t, l.audit(t.Context(), c.batch, c.batch))
}

// A delayed connection takes the added time for a round trip, and no less; how much more is the machine's business.
func TestProxyDelays(t *testing.T) {
	t.Parallel()
	l := newTestLab(t)
	pool, err := l.pool(t.Context(), fiveMilli, 1, nil)
	require.NoError(t, err)
	defer pool.Close()
	var took []float64
	require.NoError(t, ping(t.Context(), pool, &took))
	took = nil
	require.NoError(t, ping(t.Context(), pool, &took))
	require.GreaterOrEqual(t, took[0], 5.0)
}

// A proxy whose server is gone closes the client's connection too.
func TestProxyEndsBothSides(t *testing.T) {
	t.Parallel()
	l := newTestLab(t)
	pool, err := l.pool(t.Context(), oneMilli, 1, nil)
	require.NoError(t, err)
	defer pool.Close()
	_, err = pool.Exec(t.Context(), `SELECT pg_terminate_backend(pg_backend_pid())`)
	require.Error(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, pool.Ping(ctx), "a new connection works")
}
