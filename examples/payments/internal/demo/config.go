// Package demo works one stream of charge commands three times, each time with another handler, kills workers while
// they do it, and counts what became of the charges.
package demo

import (
	"fmt"
	"io"
)

// maxWorkers keeps within the connections that a PostgreSQL takes by default.
const maxWorkers = 64

// Config says how large the demo is.
type Config struct {
	Messages int    // different charge commands; some are published twice
	Workers  int    // worker processes at a time
	Kills    int    // workers to kill in each of the three runs, at most one for each message
	Seed     uint64 // of the commands, the copies, the kills and the pauses
	DSN      string // of the PostgreSQL to use; empty: find or start one

	Out      io.Writer // for the lines that say what is used
	Progress io.Writer // for the progress bar; nil: none
}

// Validate returns the first thing that is wrong with c, in words that fit the command line.
func (c Config) Validate() error {
	switch {
	case c.Messages < 1:
		return fmt.Errorf("-messages is %d: it must be at least 1", c.Messages)
	case c.Workers < 1 || c.Workers > maxWorkers:
		return fmt.Errorf("-workers is %d: it must be 1 to %d", c.Workers, maxWorkers)
	case c.Kills < 0:
		return fmt.Errorf("-kills is %d: it must not be negative", c.Kills)
	case c.Kills > c.Messages:
		return fmt.Errorf("-kills is %d: it must not be more than -messages, which is %d", c.Kills, c.Messages)
	}
	return nil
}
