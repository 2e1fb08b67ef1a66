package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// table is printed with its columns aligned.
type table struct {
	title string
	rows  [][]string
}

func (t *table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.rows = append(t.rows, row)
}

func (t *table) write(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s\n\n", t.title); err != nil {
		return err
	}
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		if _, err := fmt.Fprintln(aligned, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	if err := aligned.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}
