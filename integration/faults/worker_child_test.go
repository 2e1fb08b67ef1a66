package faults

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/txidem"
)

// The environment of a child: this very test binary, as a worker that is there to be killed.
const (
	envChildDSN  = "TXIDEM_FAULTS_CHILD_DSN"
	envChildMode = "TXIDEM_FAULTS_CHILD_MODE"
)

// The modes of a child.
const (
	modeGuarded = "guarded" // Process
	modePlain   = "plain"   // a transaction, then the ack: the control that must double
)

// The points at which a child stops when it is told to. It says "at", and waits for SIGKILL.
const (
	pointNone         = "none"
	pointHandler      = "handler"       // half the effect is written
	pointBeforeCommit = "before-commit" // the whole effect is written, and the handler returns next
	pointAfterCommit  = "after-commit"  // committed, and the ack comes next
)

// init makes this process a child when the environment says so. It does not return then: no test runs in a child.
func init() {
	if dsn := os.Getenv(envChildDSN); dsn != "" {
		os.Exit(child(dsn, os.Getenv(envChildMode)))
	}
}

// childWorker serves deliveries that come as lines on standard input, "<id> <point>", one at a time. It answers on standard
// output: "at" at the point, where it stays, or "acked <outcome>" or "failed <error>" at the end.
type childWorker struct {
	pool  *pgxpool.Pool
	guard *txidem.Guard // nil in the plain mode
	lines *bufio.Scanner
}

// child runs until standard input ends, which it does when the parent is gone.
func child(dsn, mode string) int {
	pool, err := pgxpool.New(context.Background(), dsn)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer pool.Close()
	c := &childWorker{pool: pool, lines: bufio.NewScanner(os.Stdin)}
	if mode == modeGuarded {
		if c.guard, err = txidem.New(pool, &txidem.Config{Consumer: consumer}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	for c.lines.Scan() {
		id, point, _ := strings.Cut(c.lines.Text(), " ")
		c.deliver(context.Background(), id, point)
	}
	return 0
}

func (c *childWorker) deliver(ctx context.Context, id, point string) {
	outcome, err := c.process(ctx, id, func(ctx context.Context, tx pgx.Tx) error {
		if err := debit(ctx, tx, id); err != nil {
			return err
		}
		c.stop(point, pointHandler)
		err := credit(ctx, tx, id)
		c.stop(point, pointBeforeCommit)
		return err
	})
	if err != nil {
		fmt.Printf("failed %q\n", err)
		return
	}
	c.stop(point, pointAfterCommit)
	fmt.Printf("acked %v\n", outcome)
}

// process runs the handler with txidem, or as a program without it does.
func (c *childWorker) process(ctx context.Context, id string, handler txidem.Handler) (txidem.Outcome, error) {
	if c.guard != nil {
		return c.guard.Process(ctx, id, handler)
	}
	err := pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error { return handler(ctx, tx) })
	return txidem.Unguarded, err
}

// stop says that the point is reached where it was asked to stop, and stays there until it is killed, or until its
// parent is gone.
func (c *childWorker) stop(asked, here string) {
	if asked != here {
		return
	}
	fmt.Println("at")
	c.lines.Scan()
	os.Exit(1)
}
