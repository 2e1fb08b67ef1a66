package faults

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
)

// The promises that the faults are held against: the two groups of the report's rows.
const (
	transactional = "effect in the transaction (Process, Wrap, Pipeline, WrapBatch, ClaimTx)"
	seenSet       = "effect outside it (WrapSeen), promised at least once"
)

// The points of a delivery at which faults are injected: the columns of the report. For a WrapSeen delivery the look into
// the seen-set counts as the claim, and Remember as the commit.
const (
	atClaim   = "claim"
	atHandler = "handler"
	atCommit  = "commit"
)

// report is what TestMain prints when the run is over.
var report = &table{rows: map[rowKey]*row{}}

// table counts faults and what they did. It is safe for concurrent use.
type table struct {
	mu     sync.Mutex
	order  []rowKey
	rows   map[rowKey]*row
	points []string // the columns beyond claim, handler and commit, in the order of their first use
	notes  []string // what is said below the table
}

type rowKey struct{ promise, fault string }

type row struct {
	injected              map[string]int
	doubled, lost, leaked int
}

// injected counts n faults of a kind that fired at a point: one of the constants above, or a further column.
func (t *table) injected(promise, fault, point string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.points, point) && !slices.Contains(standardPoints, point) {
		t.points = append(t.points, point)
	}
	t.row(promise, fault).injected[point] += n
}

// doubled counts n effects beyond the first of their message.
func (t *table) doubled(promise, fault string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row(promise, fault).doubled += n
}

// lost counts n messages that were acked and have no effect, or were never acked.
func (t *table) lost(promise, fault string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row(promise, fault).lost += n
}

// leaked counts n connections that were not released, or sessions that were left in a transaction.
func (t *table) leaked(promise, fault string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row(promise, fault).leaked += n
}

// note adds a line below the table.
func (t *table) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// row returns the row of a fault, and makes it at first use. The caller holds the lock.
func (t *table) row(promise, fault string) *row {
	key := rowKey{promise, fault}
	if t.rows[key] == nil {
		t.rows[key] = &row{injected: map[string]int{}}
		t.order = append(t.order, key)
	}
	return t.rows[key]
}

var standardPoints = []string{atClaim, atHandler, atCommit}

// print writes the table, one group of rows for each promise. A run that injected nothing prints nothing.
func (t *table) print(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.order) == 0 {
		return
	}
	var text strings.Builder
	tw := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, cells := range t.cells() {
		_, _ = tw.Write([]byte(strings.Join(cells, "\t") + "\n")) // a Builder takes everything
	}
	_ = tw.Flush()
	for _, note := range t.notes {
		text.WriteString(note + "\n")
	}
	for line := range strings.Lines(text.String()) {
		_, _ = io.WriteString(w, strings.TrimRight(line, " \n")+"\n") // the end of the run: there is nobody to tell
	}
}

// cells returns the table's text, line by line. The caller holds the lock.
func (t *table) cells() [][]string {
	columns := slices.Concat(standardPoints, t.points)
	lines := [][]string{slices.Concat([]string{"faults injected at"}, columns, []string{"total", "doubled", "lost", "leaked"})}
	for _, promise := range t.promises() {
		heading := make([]string, len(lines[0]))
		heading[0] = promise
		lines = append(lines, heading)
		sum := &row{injected: map[string]int{}}
		for _, key := range t.of(promise) {
			lines = append(lines, t.rows[key].cells("  "+key.fault, columns))
			sum.add(t.rows[key])
		}
		lines = append(lines, sum.cells("  all", columns))
	}
	return lines
}

// promises returns the groups in the order of their first row.
func (t *table) promises() []string {
	var found []string
	for _, key := range t.order {
		if !slices.Contains(found, key.promise) {
			found = append(found, key.promise)
		}
	}
	slices.Sort(found) // transactional comes first, whichever test reported first
	return found
}

// of returns the rows of a group, by name.
func (t *table) of(promise string) []rowKey {
	var found []rowKey
	for _, key := range t.order {
		if key.promise == promise {
			found = append(found, key)
		}
	}
	slices.SortFunc(found, func(a, b rowKey) int { return strings.Compare(a.fault, b.fault) })
	return found
}

func (r *row) add(o *row) {
	for point, n := range o.injected {
		r.injected[point] += n
	}
	r.doubled += o.doubled
	r.lost += o.lost
	r.leaked += o.leaked
}

func (r *row) cells(name string, columns []string) []string {
	total := 0
	cells := []string{name}
	for _, point := range columns {
		total += r.injected[point]
		cells = append(cells, strconv.Itoa(r.injected[point]))
	}
	for _, n := range []int{total, r.doubled, r.lost, r.leaked} {
		cells = append(cells, strconv.Itoa(n))
	}
	return cells
}
