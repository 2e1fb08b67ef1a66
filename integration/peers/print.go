package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// write prints the report.
func (r *Report) write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	say := func(format string, args ...any) { fmt.Fprintf(tw, format+"\n", args...) } //nolint:errcheck // Flush tells
	say("\n%s, PostgreSQL %s, %d cores", r.Go, r.PostgreSQL, r.Cores)
	for _, module := range slices.Sorted(maps.Keys(r.Modules)) {
		say("%s %s", module, r.Modules[module])
	}
	for i, c := range r.Costs {
		if i == 0 || r.Costs[i-1].Sync != c.Sync {
			say("\n%s", c.title())
			say("contender\tmessages a turn\tp50 ms\t÷ plain\tclient\tserver\tboth\t÷ plain")
		}
		say("%s\t%d\t%.3f\t%.2f\t%s\t%s\t%s\t%s", c.Contender, c.Messages, c.P50, c.P50Ratio,
			number("%.0f", c.Client), number("%.0f", c.Server), number("%.0f", c.Both), number("%.2f", c.Ratio))
	}
	r.sayEffects(say)
	for _, m := range r.Missing {
		say("\n%s: %s", m.Contender, m.Why)
	}
	return tw.Flush()
}

func (c Cost) title() string {
	title := "A message, one consumer, synchronous_commit=off; processor time in µs"
	if c.Sync {
		title = "A message, one consumer, the server waits for its disk; processor time in µs"
	}
	if c.Missing != "" {
		title += " (n/a: " + c.Missing + ")"
	}
	return title
}

func (r *Report) sayEffects(say func(format string, args ...any)) {
	if len(r.Effects) == 0 {
		return
	}
	say("\nEffects of one message that is delivered more than once (right: 1)")
	say("contender\t%d copies at once\tof which answered by an error\tagain after a failure\tagain after a restart",
		r.Effects[0].Copies)
	for _, e := range r.Effects {
		say("%s\t%d\t%d\t%d\t%d", e.Contender, e.AtOnce, e.Errors, e.Failed, e.Restarted)
	}
}

func number(format string, v *float64) string {
	if v == nil {
		return "n/a"
	}
	return strings.TrimSpace(fmt.Sprintf(format, *v))
}
