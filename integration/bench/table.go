package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// table is printed with its first column to the left and the others to the right.
type table struct {
	title  string
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table as text.
func (t *table) write(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "\n%s\n", t.title); err != nil {
		return err
	}
	width := 0
	lines := append([][]string{t.header}, t.rows...)
	for _, line := range lines {
		width = max(width, utf8.RuneCountInString(line[0]))
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, line := range lines {
		if _, err := fmt.Fprintf(tw, "%-*s\t%s\t\n", width, line[0], strings.Join(line[1:], "\t")); err != nil {
			return err
		}
	}
	return tw.Flush()
}

// writeMarkdown prints the table as GitHub's Markdown.
func (t *table) writeMarkdown(w io.Writer) error {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	fmt.Fprintf(&b, "\n**%s**\n\n", t.title)
	line(t.header)
	b.WriteString("|---" + strings.Repeat("|--:", len(t.header)-1) + "|\n")
	for _, row := range t.rows {
		line(row)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
