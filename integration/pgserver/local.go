package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Local is a server that runs from this machine's binaries, on a cluster of its own in a temporary folder. It listens on
// 127.0.0.1 only and trusts whoever connects there. It is safe for concurrent use.
type Local struct {
	binaries string
	folder   string
	account  *account
	settings map[string]string

	mu     sync.Mutex
	port   int
	proc   *process
	closed bool
}

// StartLocal starts a server from local binaries, whatever TXIDEM_SERVER says: for tests that kill their server and start
// it again. Options.Order and Options.Log are not used. End it with Local.Stop.
func StartLocal(ctx context.Context, opts Options) (*Local, error) {
	binaries, err := findBinaries()
	if err != nil {
		return nil, err
	}
	a, err := serverAccount()
	if err != nil {
		return nil, err
	}
	folder, err := makeFolder(a)
	if err != nil {
		return nil, err
	}
	l := &Local{binaries: binaries, folder: folder, account: a, settings: opts.settings()}
	if err := l.create(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("binaries in %s: %w", binaries, err), l.Stop(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// openLocal is StartLocal for Start.
func openLocal(ctx context.Context, opts Options) (*Server, error) {
	l, err := StartLocal(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &Server{source: FromLocal, dsn: l.DSN(), origin: "from local binaries in " + l.binaries, local: l, end: l.Stop}, nil
}

// create makes the cluster and starts the server on a free port.
func (l *Local) create(ctx context.Context) error {
	if err := l.initdb(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.startOnFreePort(ctx)
}

// DSN returns the connection string of the superuser postgres. It stays the same after Kill and Restart.
func (l *Local) DSN() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dsn()
}

func (l *Local) dsn() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", l.port)
}

// Kill ends the server as a crash would: SIGKILL to the postmaster, and it returns once that is gone. Backends notice and
// end on their own, which may take them a moment. The cluster stays for Restart. A server that is down stays down.
func (l *Local) Kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proc != nil {
		l.proc.kill()
	}
}

// Restart starts the server again, on the same cluster and port, and returns when it takes connections, crash recovery
// included. One that runs is killed first.
func (l *Local) Restart(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errors.New("pgserver: restart a server that was stopped: its cluster is removed, start a new one")
	}
	if l.proc != nil {
		l.proc.kill()
	}
	if err := l.startAgain(ctx); err != nil {
		return fmt.Errorf("pgserver: restart the server in %s: %w", l.folder, err)
	}
	return nil
}

// Stop ends the server and removes its folder. The shutdown is PostgreSQL's immediate one, since nothing is kept; a
// server still there when ctx ends is killed. It may be called more than once.
func (l *Local) Stop(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	l.end(ctx)
	if err := os.RemoveAll(l.folder); err != nil {
		return fmt.Errorf("pgserver: remove the stopped server's folder: %w", err)
	}
	return nil
}

// end asks the process to quit and, when it does not in time, kills it.
func (l *Local) end(ctx context.Context) {
	if l.proc == nil || !l.proc.running() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, quitLimit)
	defer cancel()
	_ = l.proc.quit() // fails only for a process that is gone already
	_ = l.proc.wait(ctx)
}

func (l *Local) dataFolder() string { return filepath.Join(l.folder, "data") }

func (l *Local) logFile() string { return filepath.Join(l.folder, "server.log") }
