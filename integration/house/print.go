package main

import (
	"cmp"
	"fmt"
	"slices"
)

// A function is short below this many lines. Of each room, so many of the longest functions are named.
const (
	short     = 20
	longNamed = 5
)

// sizes counts each room.
func (h *house) sizes() *table {
	t := &table{title: "Sizes"}
	t.add("", "files", "lines", "file p50", "p90", "max", "functions", "length p50", "p90", "max",
		fmt.Sprintf("under %d", short), "exported", "without doc")
	for _, r := range h.rooms() {
		files, functions, names := r.fileLines(), r.functionLines(), r.names()
		t.add(r.name, len(files), sum(files), quantile(files, 50), quantile(files, 90), quantile(files, 100),
			len(functions), quantile(functions, 50), quantile(functions, 90), quantile(functions, 100),
			percent(below(functions, short), len(functions)), len(names), len(bare(names)))
	}
	return t
}

// longest names the longest functions of each package and module.
func (h *house) longest() *table {
	t := &table{title: fmt.Sprintf("The %d longest functions of each", longNamed)}
	t.add("lines", "function", "file")
	for _, r := range slices.Concat(h.packages, h.modules) {
		type placed struct {
			function
			path string
		}
		var all []placed
		for _, f := range r.files {
			for _, fn := range f.functions {
				all = append(all, placed{fn, f.path})
			}
		}
		slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(b.lines, a.lines) })
		for _, fn := range all[:min(len(all), longNamed)] {
			t.add(fn.lines, fn.name, fn.path)
		}
	}
	return t
}

// undocumented lists the exported names without a doc comment.
func (h *house) undocumented() *table {
	t := &table{title: "Exported names without a doc comment"}
	t.add("name", "file")
	for _, r := range slices.Concat(h.packages, h.modules) {
		for _, f := range r.files {
			for _, n := range bare(f.exported) {
				t.add(n.name, f.path)
			}
		}
	}
	return t
}
