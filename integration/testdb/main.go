package testdb

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// shared is the package's cluster. Main sets it before any test runs.
var shared *cluster

// Main runs the tests of a package and exits the process. It is the body of TestMain.
//
// A server is started when the first test calls New; a run without such a test needs none. After the tests the server is
// stopped, and the run fails when goroutines are left. On SIGINT and SIGTERM the server is stopped first, then the
// process exits with status 130.
func Main(m *testing.M, config Config) {
	shared = &cluster{config: config, interrupted: make(chan struct{})}
	release := stopOnSignal(shared)
	code := m.Run()
	release()
	if config.Finish != nil {
		config.Finish()
	}
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "testdb:", err)
		code = max(code, 1)
	}
	if code == 0 {
		code = leakCode(config.Leaks)
	}
	os.Exit(code)
}

// leakCode looks for goroutines that are left, and prints them.
func leakCode(options []goleak.Option) int {
	if err := goleak.Find(options...); err != nil {
		fmt.Fprintln(os.Stderr, "testdb: goroutines left after the last test:", err)
		return 1
	}
	return 0
}

// stopOnSignal makes the signals that end a process stop the cluster first. The returned func takes that back and
// returns when the goroutine behind it is gone.
func stopOnSignal(c *cluster) (release func()) {
	signals := make(chan os.Signal, 1)
	done := make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer close(done)
		if _, interrupted := <-signals; interrupted {
			close(c.interrupted)
			_ = c.stop() // the process ends: there is nobody to tell
			os.Exit(130)
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-done
	}
}
