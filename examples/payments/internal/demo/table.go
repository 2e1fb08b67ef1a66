package demo

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// columns are the heads of the table, and row renders a Result under them.
var columns = []string{
	"", "messages", "deliveries", "workers killed", "between COMMIT and ack", "charges", "charged twice", "lost",
	"overcharged", "ledger",
}

func (r Result) row() []string {
	ledger := "balanced"
	if r.Unbalanced != 0 {
		ledger = fmt.Sprintf("%d unbalanced", r.Unbalanced)
	}
	cells := []string{r.Mode.Title()}
	for _, n := range []int{r.Messages, r.Deliveries, r.Kills, r.AfterCommit, r.Charges, r.Twice, r.Lost} {
		cells = append(cells, fmt.Sprint(n))
	}
	return append(cells, cents(r.Overcharged), ledger)
}

// WriteTable writes one line for each result.
func WriteTable(w io.Writer, results []Result) error {
	var text strings.Builder
	text.WriteString(line(columns))
	for _, r := range results {
		text.WriteString(line(r.row()))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	if _, err := io.WriteString(t, text.String()); err != nil {
		return err
	}
	return t.Flush()
}

// line ends each cell with a tab, as tabwriter wants it.
func line(cells []string) string { return strings.Join(cells, "\t") + "\t\n" }
