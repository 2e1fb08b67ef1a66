package faults

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table adds up, whoever reports first.
func TestReport(t *testing.T) {
	t.Parallel()
	r := &table{rows: map[rowKey]*row{}}
	r.doubled(seenSet, "cut", 2)
	r.injected(seenSet, "cut", atCommit, 3)
	r.injected(transactional, "server killed", "anywhere", 4)
	r.injected(transactional, "cut", atClaim, 5)
	r.injected(transactional, "cut", atClaim, 1)
	r.leaked(transactional, "cut", 1)
	r.note("%d faults in all", 13)
	var out strings.Builder
	r.print(&out)
	var lines [][]string
	for line := range strings.SplitSeq(strings.TrimSpace(out.String()), "\n") {
		lines = append(lines, strings.Fields(line))
	}
	require.Len(t, lines, 9)
	require.Equal(t, strings.Fields("faults injected at claim handler commit anywhere total doubled lost leaked"), lines[0])
	require.Equal(t, strings.Fields(transactional), lines[1])
	require.Equal(t, strings.Fields("cut 6 0 0 0 6 0 0 1"), lines[2])
	require.Equal(t, strings.Fields("server killed 0 0 0 4 4 0 0 0"), lines[3])
	require.Equal(t, strings.Fields("all 6 0 0 4 10 0 0 1"), lines[4])
	require.Equal(t, strings.Fields(seenSet), lines[5])
	require.Equal(t, strings.Fields("cut 0 0 3 0 3 2 0 0"), lines[6])
	require.Equal(t, strings.Fields("13 faults in all"), lines[8])
}

// A run that injected nothing says nothing.
func TestReportOfNothing(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	(&table{}).print(&out)
	require.Empty(t, out.String())
}
