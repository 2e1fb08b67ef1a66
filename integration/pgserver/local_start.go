package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	initdbLimit = 60 * time.Second
	readyLimit  = 60 * time.Second
	greetLimit  = 5 * time.Second
	quitLimit   = 10 * time.Second
	pollEvery   = 20 * time.Millisecond
	portTries   = 5

	// Below the ranges from which Linux, macOS and Windows take ports for outgoing connections, so that none of those can
	// sit on the port between Kill and Restart.
	lowestPort  = 20000
	highestPort = 32000
)

var (
	errExited     = errors.New("the server ended while it started")
	errPortTaken  = errors.New("another process took its port")
	errStillInUse = errors.New("backends of the killed server are still attached to its shared memory")
)

// initdb makes the cluster. Its files are not flushed one by one: a cluster that a crash of the machine interrupts is of
// no use anyway. The server itself runs with fsync on.
func (l *Local) initdb(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, initdbLimit, fmt.Errorf("not done within %v", initdbLimit))
	defer cancel()
	var out bytes.Buffer
	cmd := l.command("initdb", "--pgdata", l.dataFolder(), "--username", "postgres", "--auth", "trust",
		"--encoding", "UTF8", "--locale", clusterLocale(), "--no-sync")
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := startProcess(cmd)
	if err == nil {
		err = p.wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, lastLines(out.String()))
	}
	return nil
}

// clusterLocale compares by code point either way; only glibc and musl know it by its UTF-8 name for sure.
func clusterLocale() string {
	if runtime.GOOS == "linux" {
		return "C.UTF-8"
	}
	return "C"
}

// command prepares one of the server binaries. It runs in the server's folder, since the account may not be able to
// enter ours, and with English messages, since they are read here.
func (l *Local) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(l.binaries, name), args...)
	cmd.Dir = l.folder
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = childAttr(l.account)
	cmd.WaitDelay = quitLimit
	return cmd
}

// startOnFreePort tries ports until one is really free: between the look and the server's bind it may be taken.
func (l *Local) startOnFreePort(ctx context.Context) error {
	var err error
	for range portTries {
		if l.port, err = freePort(); err != nil {
			return err
		}
		if err = l.startServer(ctx); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// startAgain starts on the port the server had. Right after a kill, backends may hold the shared memory for a moment
// longer, and the new server then refuses to start.
func (l *Local) startAgain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		err := l.startServer(ctx)
		if !errors.Is(err, errStillInUse) {
			return err
		}
		if !pause(ctx) {
			return err
		}
	}
}

// startServer starts the postmaster and returns when it takes connections.
func (l *Local) startServer(ctx context.Context) error {
	log, err := os.Create(l.logFile())
	if err != nil {
		return fmt.Errorf("make the server's log: %w", err)
	}
	defer log.Close() // the server has its own handle
	args := append([]string{"-D", l.dataFolder(), "-p", strconv.Itoa(l.port)}, settingArgs(l.serverSettings())...)
	cmd := l.command("postgres", args...)
	cmd.Stdout, cmd.Stderr = log, log
	if l.proc, err = startProcess(cmd); err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	if err := l.waitReady(ctx); err != nil {
		l.end(context.WithoutCancel(ctx))
		return l.explain(err)
	}
	return nil
}

// serverSettings adds what ties the server to its folder and port. The cluster's name is how waitReady knows its own
// server from another one on the same port.
func (l *Local) serverSettings() map[string]string {
	s := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": "",
		"logging_collector":       "off",
		"cluster_name":            l.name(),
	}
	for name, value := range l.settings {
		s[name] = value
	}
	return s
}

func (l *Local) name() string { return filepath.Base(l.folder) }

// waitReady connects until the server answers. It gives up when the process ends.
func (l *Local) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		err := l.greet(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-l.proc.exited:
			return fmt.Errorf("%w (%v)", errExited, l.proc.cmd.ProcessState)
		default:
		}
		if !pause(ctx) {
			return fmt.Errorf("the server takes no connection: %w", err)
		}
	}
}

// greet connects and makes sure that it is this server that answers.
func (l *Local) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, greetLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, l.dsn())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var name string
	if err := conn.QueryRow(ctx, "SHOW cluster_name").Scan(&name); err != nil {
		return err
	}
	if name != l.name() {
		return errPortTaken
	}
	return nil
}

// explain adds the server's own words, and recognises the two causes that a new try can cure.
func (l *Local) explain(err error) error {
	log, readErr := os.ReadFile(l.logFile())
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	text := string(log)
	switch {
	case strings.Contains(text, "could not create any TCP/IP sockets"):
		err = fmt.Errorf("%w: %w", errPortTaken, err)
	case strings.Contains(text, "is still in use"):
		err = fmt.Errorf("%w: %w", errStillInUse, err)
	}
	return fmt.Errorf("%w\nThe server's log ends with:\n%s", err, lastLines(text))
}

// freePort returns a port of the loopback address on which nothing listens at the moment.
func freePort() (int, error) {
	var err error
	for range 100 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		var listener net.Listener
		if listener, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("find a free port between %d and %d: %w", lowestPort, highestPort, err)
}

// pause waits until the next look at a state, and reports false when ctx has ended.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pollEvery):
		return true
	}
}

// lastLines returns the end of a log, enough to see why a server gave up.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if keep := 15; len(lines) > keep {
		lines = lines[len(lines)-keep:]
	}
	return strings.Join(lines, "\n")
}
