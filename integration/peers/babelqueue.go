package main

// openBabelQueue is set where a checkout of its source is compiled in, which the script run does.
var openBabelQueue openFunc

// babelQueue is BabelQueue's Wrap over its PostgreSQL store.
func babelQueue() peer {
	p := peer{
		name: "BabelQueue, Wrap with its PostgreSQL store", module: "github.com/babelqueue/babelqueue-go", open: openBabelQueue,
	}
	if p.open == nil {
		p.missing = "not measured: set BABELQUEUE to a checkout"
	}
	return p
}
