package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/bench/cputime"
)

func TestRules(t *testing.T) {
	t.Parallel()
	for rule, want := range map[rule][3]bool{
		atMost: {true, true, false}, atLeast: {false, true, true}, exactly: {false, true, false},
	} {
		for i, figure := range []float64{0.9, 1, 1.1} {
			require.Equal(t, want[i], rule.holds(figure, 1), "%v %s 1", figure, rule)
		}
	}
}

// tried is a report of one worker's processor times, as ratios to the plain transaction and to 100 rows in one.
func tried(ratios map[string][2]reading) *Report {
	r := &Report{}
	for name, of := range ratios {
		e := Effort{Contender: name, Workers: 1, Turns: 1, Ratio: of[0], RowsRatio: of[1], Missing: of[0].missing}
		r.Efforts = append(r.Efforts, e)
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

// WrapBatch is held against the same rows in one transaction, the others against the plain transaction.
func TestProcessorTargets(t *testing.T) {
	t.Parallel()
	r := tried(map[string][2]reading{
		processName:    {{value: 1.2}, {value: 30}},
		pipelineName:   {{value: 0.6}, {value: 15}},
		batchName(100): {{value: 0.1}, {value: 1.75}},
	})
	for what, want := range map[string]Target{
		"Process ÷ plain, processor time":                                      {Figure: 1.2, Reached: true},
		"Pipeline ÷ plain, processor time":                                     {Figure: 0.6},
		"WrapBatch of 100 ÷ 100 rows in one plain transaction, processor time": {Figure: 1.75, Reached: true},
	} {
		g := target(t, r, what)
		require.Equal(t, want.Figure, g.Figure, what)
		require.Equal(t, want.Reached, g.verdict() == "reached", what)
	}
}

// What is missing is told, in the tables and in the JSON, and never taken for a number.
func TestMissing(t *testing.T) {
	t.Parallel()
	away := reading{missing: "no /proc here"}
	r := tried(map[string][2]reading{processName: {away, away}})
	require.Equal(t, "no /proc here", target(t, r, "Process ÷ plain, processor time").verdict())
	require.Equal(t, notInThisRun, target(t, r, "Pipeline ÷ plain, processor time").verdict())
	r.Targets = r.targets()
	var text bytes.Buffer
	require.NoError(t, r.write(&text, false))
	require.Contains(t, text.String(), "(n/a: no /proc here)")
	require.Regexp(t, `1\. Process ÷ plain, processor time +at most 1\.2 +n/a +no /proc here`, text.String())
	written, err := json.Marshal(r.Efforts[0])
	require.NoError(t, err)
	require.Contains(t, string(written), `"both_to_plain":null`)
}

// A round in which the machine was slow changes the medians of the times, and not those of the ratios.
func TestRatios(t *testing.T) {
	t.Parallel()
	turn := func(micros int) effortTurn {
		return effortTurn{Spent: cputime.Spent{Client: time.Duration(micros) * time.Microsecond}, messages: 1}
	}
	plain := []effortTurn{turn(100), turn(100), turn(300), turn(500), turn(700)}
	other := []effortTurn{turn(200), turn(200), turn(600), turn(1000), turn(7000)}
	require.InDelta(t, 2, ratioOf(other, plain, effortTurn.both), 1e-9)
	require.InDelta(t, 600, medianOf(other, effortTurn.both), 1e-9)
}
