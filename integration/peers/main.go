package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/txidem/txidem-go/integration/pgserver"
)

func main() {
	p := fullPlan()
	file := flag.String("json", "", "write the figures to this `file`")
	flag.IntVar(&p.rounds, "rounds", p.rounds, "turns of each contender")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, p, *file); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// run gets a server and ends it.
func run(ctx context.Context, p plan, file string) (err error) {
	server, err := pgserver.Start(ctx, pgserver.Options{Log: func(line string) { fmt.Fprintln(os.Stderr, "peers:", line) }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	r, err := measure(ctx, server.DSN(), p)
	if err != nil {
		return err
	}
	err = r.write(os.Stdout)
	if file != "" {
		err = errors.Join(err, r.writeJSON(file))
	}
	return err
}
