package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"

	"github.com/txidem/txidem-go/examples/payments/internal/demo"
)

const usage = `A stream of payments is worked three times while worker processes are killed: by a handler without
deduplication, by a seen-set, and by txidem's transaction. A table at the end says who charged twice.
The exit status is 0 when the transactional handler charged every message exactly once, 1 when it did not, and 2 when the
demo could not be run to its end.

usage: payments [flags]

`

// parseOptions reads the command line. It writes help and complaints to output.
func parseOptions(args []string, output io.Writer) (demo.Config, error) {
	cfg := demo.Config{Seed: rand.Uint64N(1_000_000)} //nolint:gosec // a seed to repeat, not a secret
	flags := flag.NewFlagSet("payments", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.Usage = func() {
		_, _ = fmt.Fprint(output, usage)
		flags.PrintDefaults()
	}
	define(flags, &cfg)
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	err := check(cfg, flags.Args())
	if err != nil {
		_, _ = fmt.Fprintf(output, "payments: %v; see -help\n", err)
	}
	return cfg, err
}

// define sets the flags up to change cfg.
func define(flags *flag.FlagSet, cfg *demo.Config) {
	flags.IntVar(&cfg.Messages, "messages", 1000,
		"how many different `messages` to publish; about one in eight is published twice")
	flags.IntVar(&cfg.Workers, "workers", 4, "how many worker `processes` work at a time")
	flags.IntVar(&cfg.Kills, "kills", 20, "how many `workers` to kill in each of the three runs")
	flags.StringVar(&cfg.DSN, "dsn", "",
		"the PostgreSQL to use, as a `URL`; schemas are made in it and dropped at the end (default: one is found or started)")
	flags.Func("seed", "the `number` that messages, copies and kills are drawn from (default: a new one each time)",
		func(text string) (err error) {
			cfg.Seed, err = strconv.ParseUint(text, 10, 64)
			return err
		})
}

func check(cfg demo.Config, rest []string) error {
	if len(rest) > 0 {
		return errors.New("there are only flags, but found " + strconv.Quote(rest[0]))
	}
	return cfg.Validate()
}
