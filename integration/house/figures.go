package main

import (
	"fmt"
	"slices"
)

func (r *room) fileLines() []int {
	var lines []int
	for _, f := range r.files {
		lines = append(lines, f.lines)
	}
	return lines
}

func (r *room) functionLines() []int {
	var lines []int
	for _, f := range r.files {
		for _, fn := range f.functions {
			lines = append(lines, fn.lines)
		}
	}
	return lines
}

func (r *room) names() []name {
	var names []name
	for _, f := range r.files {
		names = append(names, f.exported...)
	}
	return names
}

// bare returns the names without a doc comment.
func bare(names []name) []name {
	return slices.DeleteFunc(slices.Clone(names), func(n name) bool { return n.documented })
}

func sum(values []int) int {
	total := 0
	for _, v := range values {
		total += v
	}
	return total
}

// below counts the values under a limit.
func below(values []int, limit int) int {
	return len(slices.DeleteFunc(slices.Clone(values), func(v int) bool { return v >= limit }))
}

// quantile returns the smallest value that p percent of the values do not exceed, or 0 of none.
func quantile(values []int, p int) int {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)*p+99)/100-1]
}

func percent(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}
