package main

import "fmt"

// effortTables has one table for each number of workers.
func (r *Report) effortTables() []*table {
	var all []*table
	for i, e := range r.Efforts {
		if i == 0 || r.Efforts[i-1].Workers != e.Workers {
			all = append(all, newEffortTable(e))
		}
		t := all[len(all)-1]
		rows := "–"
		if e.Batch > 1 {
			rows = e.RowsRatio.text("%.2f")
		}
		t.add(e.Contender, fmt.Sprint(e.Messages), e.Client.text("%.1f"), e.Server.text("%.1f"), e.Both.text("%.1f"),
			e.Ratio.text("%.3f"), rows, fmt.Sprintf("%.3f", e.P50), count(e.PerSecond), ratio(e.RateRatio))
	}
	return all
}

func newEffortTable(first Effort) *table {
	title := fmt.Sprintf("Processor time in µs a message, medians of %d turns, %s, workers: %d",
		first.Turns, asyncLoop.Name, first.Workers)
	if first.Missing != "" {
		title += " (n/a: " + first.Missing + ")"
	}
	return &table{title: title, header: []string{
		"contender", "messages a turn", "client", "server", "both", "÷ plain", "÷ 100 rows",
		"p50 ms", "messages/s", "messages/s ÷ plain",
	}}
}
