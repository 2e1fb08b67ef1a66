package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRules(t *testing.T) {
	t.Parallel()
	for rule, want := range map[rule][3]bool{atMost: {true, true, false}, atLeast: {false, true, true}, exactly: {false, true, false}} {
		for i, figure := range []float64{0.9, 1, 1.1} {
			require.Equal(t, want[i], rule.holds(figure, 1), "%v %s 1", figure, rule)
		}
	}
}

// worked is a report of one worker's processor times, in microseconds a message.
func worked(times map[string]reading) *Report {
	r := &Report{}
	for name, both := range times {
		r.Efforts = append(r.Efforts, Effort{Contender: name, Workers: 1, Turns: 1, Both: both, Missing: both.missing})
	}
	return r
}

// target finds the one about something.
func target(t *testing.T, r *Report, what string) Target {
	t.Helper()
	for _, g := range r.targets() {
		if g.What == what {
			return g
		}
	}
	require.Fail(t, "no target "+what)
	return Target{}
}

// The targets compare processor times, WrapBatch with the same rows in one transaction.
func TestProcessorTargets(t *testing.T) {
	t.Parallel()
	r := worked(map[string]reading{
		plainName: {value: 200}, processName: {value: 240}, pipelineName: {value: 120}, plainRowsName: {value: 8}, batchName(100): {value: 14},
	})
	g := target(t, r, "Process ÷ plain, processor time")
	require.InDelta(t, 1.2, g.Figure, 1e-9)
	require.Equal(t, "reached", g.verdict())
	g = target(t, r, "Pipeline ÷ plain, processor time")
	require.InDelta(t, 0.6, g.Figure, 1e-9)
	require.Equal(t, "not reached", g.verdict())
	g = target(t, r, "WrapBatch of 100 ÷ 100 rows in one plain transaction, processor time")
	require.InDelta(t, 1.75, g.Figure, 1e-9)
	require.Equal(t, "reached", g.verdict())
}

// What is missing is told, in the tables and in the JSON, and never taken for a number.
func TestMissing(t *testing.T) {
	t.Parallel()
	r := worked(map[string]reading{plainName: {missing: "no /proc here"}, processName: {missing: "no /proc here"}})
	require.Equal(t, "no /proc here", target(t, r, "Process ÷ plain, processor time").verdict())
	require.Equal(t, notInThisRun, target(t, r, "Pipeline ÷ plain, processor time").verdict())
	r.Targets = r.targets()
	var text bytes.Buffer
	require.NoError(t, r.write(&text, false))
	require.Contains(t, text.String(), "(n/a: no /proc here)")
	require.Regexp(t, `1\. Process ÷ plain, processor time +at most 1\.2 +n/a +no /proc here`, text.String())
	written, err := json.Marshal(r.Efforts[0])
	require.NoError(t, err)
	require.Contains(t, string(written), `"both_us":null`)
}

func TestReadings(t *testing.T) {
	t.Parallel()
	six, two, none := reading{value: 6}, reading{value: 2}, reading{missing: "away"}
	require.Equal(t, reading{value: 8}, six.plus(two))
	require.Equal(t, reading{value: 3}, six.over(two))
	require.Equal(t, none, six.over(none))
	require.Equal(t, none, none.plus(two))
	require.Equal(t, "n/a", none.text("%.0f"))
}
