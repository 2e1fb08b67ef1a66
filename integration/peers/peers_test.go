package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/txidem/txidem-go/integration/bench/cputime"
	"github.com/txidem/txidem-go/integration/testdb"
)

// Watermill's map has a goroutine that nothing ends.
func TestMain(m *testing.M) {
	testdb.Main(m, testdb.Config{Leaks: []goleak.Option{goleak.IgnoreAnyFunction(
		"github.com/ThreeDotsLabs/watermill/message/router/middleware.(*mapExpiringKeyRepository).cleanOutLoop")}})
}

// The whole run, at a size that says nothing about times.
func TestRun(t *testing.T) {
	t.Parallel()
	p := plan{rounds: 1, slice: time.Millisecond, copies: 4, pause: 20 * time.Millisecond}
	r, err := measure(t.Context(), testdb.New(t).DSN(), p)
	require.NoError(t, err)
	present := len(peers()) - len(r.Missing)
	require.Len(t, r.Costs, 2*present, "with and without the disk's wait")
	require.Len(t, r.Effects, present)
	for _, c := range r.Costs {
		require.Positive(t, c.P50, c.Contender)
		require.Equal(t, c.Missing == "", c.Both != nil, c.Contender)
	}
	require.Equal(t, Effects{Contender: plainName, Copies: 4, AtOnce: 4, Failed: 1, Restarted: 2}, r.Effects[0])
	require.Equal(t, Effects{Contender: libraryName, Copies: 4, AtOnce: 1, Failed: 1, Restarted: 1}, r.Effects[1])

	file := filepath.Join(t.TempDir(), "result.json")
	require.NoError(t, r.writeJSON(file))
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, json.Valid(written))
}

// A contender whose source is not at hand is told of, with what to do about it.
func TestMissing(t *testing.T) {
	t.Parallel()
	r := &Report{Missing: []Missing{{"somebody", "not measured: set SOMETHING"}}}
	var text bytes.Buffer
	require.NoError(t, r.write(&text))
	require.Contains(t, text.String(), "somebody: not measured: set SOMETHING")
}

// Ratios are taken within each round.
func TestCost(t *testing.T) {
	t.Parallel()
	took := func(micros ...int) *lane {
		l := &lane{contender: &contender{}}
		for _, n := range micros {
			d := time.Duration(n) * time.Microsecond
			l.times = append(l.times, d)
			l.turns = append(l.turns, turn{Spent: cputime.Spent{Client: d, Server: d}, messages: 2})
		}
		return l
	}
	c := took(300, 300, 6000).cost(took(100, 100, 1000))
	require.InDelta(t, 0.3, c.P50, 1e-9)
	require.InDelta(t, 3, c.P50Ratio, 1e-9)
	require.InDelta(t, 150, *c.Client, 1e-9)
	require.InDelta(t, 300, *c.Both, 1e-9)
	require.InDelta(t, 3, *c.Ratio, 1e-9)
}

// Where processor time cannot be read there is no number.
func TestNotMeasurable(t *testing.T) {
	t.Parallel()
	l := &lane{contender: &contender{}, times: []time.Duration{time.Millisecond}}
	l.turns = []turn{{missing: "no /proc here", messages: 1}}
	c := l.cost(l)
	require.Nil(t, c.Both)
	var text bytes.Buffer
	require.NoError(t, (&Report{Costs: []Cost{c}}).write(&text))
	require.Contains(t, text.String(), "(n/a: no /proc here)")
	require.Regexp(t, `1\.000 +1\.00 +n/a +n/a +n/a +n/a`, text.String())
}
