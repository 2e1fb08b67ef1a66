// Command house prints how a checkout is built: files, their lines, the lengths of functions, and which exported names
// have no doc comment. Packages of the product have a line each, modules beside it are summed.
//
//	go run ./house ROOT
//
// Test files, and folders named testdata or vendor or beginning with "." or "_", do not count. Lines are all lines of a
// file; a function's are those from "func" to its closing brace. A percentile is the smallest value that so many of them
// do not exceed.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: house ROOT")
		os.Exit(2)
	}
	if err := report(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

// report prints the tables for the checkout at root.
func report(w io.Writer, root string) error {
	h, err := survey(root)
	if err != nil {
		return err
	}
	for _, t := range []*table{h.sizes(), h.longest(), h.undocumented()} {
		if err := t.write(w); err != nil {
			return err
		}
	}
	return nil
}
