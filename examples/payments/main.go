// Command payments shows what txidem is for. See -help and the README beside it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/txidem/txidem-go/examples/payments/internal/demo"
	"github.com/txidem/txidem-go/examples/payments/internal/worker"
)

// The exit statuses.
const (
	exitOK          = 0
	exitFault       = 1   // the transactional handler did not charge exactly once
	exitNotRun      = 2   // the demo could not be run to its end, or the command line is wrong
	exitInterrupted = 130 // as shells report a program that Ctrl-C has ended
)

func main() {
	cfg, requested, err := worker.Requested()
	switch {
	case err != nil:
		os.Exit(notRun(err))
	case requested:
		os.Exit(work(cfg))
	default:
		os.Exit(run(os.Args[1:]))
	}
}

// work is the main function of a worker process. Ctrl-C in a terminal reaches it too, but when it ends is its parent's
// decision.
func work(cfg worker.Config) int {
	signal.Ignore(os.Interrupt)
	if err := worker.Run(context.Background(), cfg, os.Stdin, os.Stdout); err != nil {
		return notRun(err)
	}
	return exitOK
}

// run is the main function of the demo.
func run(args []string) int {
	cfg, err := parseOptions(args, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitNotRun
	}
	cfg.Out = os.Stdout
	if term.IsTerminal(int(os.Stderr.Fd())) {
		cfg.Progress = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the clean end

	results, err := demo.Run(ctx, cfg)
	switch {
	case err == nil:
		return report(results)
	case ctx.Err() != nil:
		fmt.Fprintf(os.Stderr, "payments: interrupted: %v\n", err)
		return exitInterrupted
	default:
		return notRun(err)
	}
}

// report prints the table and the verdict on it.
func report(results []demo.Result) int {
	fmt.Println()
	if err := demo.WriteTable(os.Stdout, results); err != nil {
		return notRun(err)
	}
	fmt.Println()
	if err := demo.Verdict(results); err != nil {
		fmt.Printf("FAILED: %v\n", err)
		return exitFault
	}
	fmt.Println("ok: the transactional handler charged every message exactly once")
	return exitOK
}

// notRun reports what has kept a process from its work.
func notRun(err error) int {
	fmt.Fprintf(os.Stderr, "payments: %v\n", err)
	return exitNotRun
}
