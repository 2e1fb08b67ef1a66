package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// write prints the report, as text or as Markdown.
func (r *Report) write(w io.Writer, markdown bool) error {
	tables := []*table{r.machineTable()}
	if len(r.Costs) > 0 {
		tables = append(tables, r.costTable())
	}
	tables = append(tables, r.effortTables()...)
	for _, c := range r.Cells {
		tables = append(tables, r.cellTable(c))
	}
	if r.Hot != nil {
		tables = append(tables, r.Hot.table())
	}
	if len(r.Claims) > 0 {
		tables = append(tables, r.claimsTable())
	}
	tables = append(tables, r.targetTable())
	for _, t := range tables {
		write := t.write
		if markdown {
			write = t.writeMarkdown
		}
		if err := write(w); err != nil {
			return err
		}
	}
	return nil
}

func (r *Report) machineTable() *table {
	m := r.Machine
	t := &table{title: "Machine", header: []string{"what", "is"}}
	t.add("processor", fmt.Sprintf("%s, %d cores", m.CPU, m.Cores))
	t.add("system", m.OS)
	t.add("Go", m.Go)
	t.add("PostgreSQL", m.PostgreSQL)
	for _, name := range slices.Sorted(maps.Keys(m.Settings)) {
		t.add(name, m.Settings[name])
	}
	for _, d := range r.Delays {
		t.add("round trip added for "+d.Place, fmt.Sprintf("%.2f ms", d.Added))
	}
	return t
}

func (r *Report) costTable() *table {
	t := &table{
		title:  "Cost of a delivery: round trips, and WAL bytes a message (effect, record and commit)",
		header: []string{"contender", "round trips", "WAL bytes", "duplicate: round trips", "WAL bytes"},
	}
	for _, c := range r.Costs {
		again, wal := "–", "–"
		if c.Dedupes {
			again, wal = count(c.DuplicateRoundTrips), count(c.DuplicateWALBytes)
		}
		t.add(c.Contender, count(c.RoundTrips), count(c.WALBytes), again, wal)
	}
	return t
}

func (r *Report) cellTable(c Cell) *table {
	t := &table{
		title: fmt.Sprintf("%s, workers: %d, duplicates: %.0f %%", c.Place.Name, c.Workers, c.Duplicates*100),
		header: []string{
			"contender", "deliveries", "p50 ms", "p95 ms", "p99 ms", "messages/s",
			"p50 ÷ plain", "p50 ÷ autocommit", "messages/s ÷ plain",
		},
	}
	for _, f := range c.Figures {
		t.add(f.Contender, fmt.Sprint(f.Deliveries), ms(f.P50), ms(f.P95), ms(f.P99), count(f.PerSecond),
			ratio(f.P50Ratio), ratio(f.P50Autocommit), ratio(f.RateRatio))
	}
	return t
}

func (h *Hot) table() *table {
	t := &table{
		title: fmt.Sprintf("%d copies of one message in flight: half of them answered %s ms after the first one's handler, "+
			"99 %% after %s ms. The others meanwhile, %d workers:", h.Copies, ms(h.AnsweredP50), ms(h.AnsweredP99), h.Workers),
		header: []string{"Process", "deliveries", "p50 ms", "p95 ms", "p99 ms", "messages/s"},
	}
	for _, line := range []struct {
		name string
		f    Figures
	}{{"without the copies", h.Quiet}, {"with them", h.Busy}} {
		f := line.f
		t.add(line.name, fmt.Sprint(f.Deliveries), ms(f.P50), ms(f.P95), ms(f.P99), count(f.PerSecond))
	}
	return t
}

func (r *Report) claimsTable() *table {
	t := &table{
		title: "A claim alone, by the records in the table",
		header: []string{
			"ids, phase", "records", "claims", "p50 ms", "p95 ms", "p99 ms", "WAL bytes", "full-page images", "WAL bytes without", "duplicate",
		},
	}
	for _, c := range r.Claims {
		t.add(string(c.IDs)+", "+c.Phase, fmt.Sprint(c.Records), fmt.Sprint(c.Claims), ms(c.P50), ms(c.P95), ms(c.P99),
			count(c.WALBytes), ratio(c.Images), count(c.BytesWithout), count(c.Duplicate))
	}
	return t
}

func (r *Report) targetTable() *table {
	t := &table{title: "Targets", header: []string{"target", "limit", "figure", "verdict"}}
	for _, g := range r.Targets {
		figure := "n/a"
		if g.Measured {
			figure = fmt.Sprintf("%.4g", g.Figure)
		}
		t.add(fmt.Sprintf("%d. %s", g.Number, g.What), fmt.Sprintf("%s %g", g.Rule, g.Limit), figure, g.verdict())
	}
	return t
}

func ms(v float64) string    { return fmt.Sprintf("%.2f", v) }
func ratio(v float64) string { return fmt.Sprintf("%.2f", v) }
func count(v float64) string { return fmt.Sprintf("%.0f", v) }
