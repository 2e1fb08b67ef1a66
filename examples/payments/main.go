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
	exitFailed      = 1 // not exactly once, or the demo could not be run
	exitUsage       = 2
	exitInterrupted = 130 // as shells report a program that Ctrl-C has ended
)

func main() {
	cfg, requested, err := worker.Requested()
	switch {
	case err != nil:
		os.Exit(failed(err))
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
		return failed(err)
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
		return exitUsage
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
		return failed(err)
	}
}

// report prints the table and the verdict on it.
func report(results []demo.Result) int {
	fmt.Println()
	if err := demo.WriteTable(os.Stdout, results); err != nil {
		return failed(err)
	}
	fmt.Println()
	if err := demo.Verdict(results); err != nil {
		fmt.Printf("FAILED: %v\n", err)
		return exitFailed
	}
	fmt.Println("ok: the transactional handler charged every message exactly once")
	return exitOK
}

func failed(err error) int {
	fmt.Fprintf(os.Stderr, "payments: %v\n", err)
	return exitFailed
}
