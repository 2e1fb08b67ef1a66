package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

const backupLimit = 60 * time.Second

// Standby starts a second server as a hot standby of this one: a copy by pg_basebackup, on a port of its own, that streams
// from here. It returns when the standby takes connections, which are read-only until it is promoted. Options.Settings are
// its settings; those of the primary do not pass over. Options.Order and Options.Log are not used. End it with Local.Stop.
func (l *Local) Standby(ctx context.Context, opts Options) (*Local, error) {
	folder, err := makeFolder(l.account)
	if err != nil {
		return nil, err
	}
	s := &Local{binaries: l.binaries, folder: folder, account: l.account, settings: opts.settings()}
	if err := s.copyFrom(ctx, l.DSN()); err != nil {
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	s.mu.Lock()
	err = s.startOnFreePort(ctx)
	s.mu.Unlock()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pgserver: start the standby: %w", err), s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// copyFrom copies a running server and writes what makes the copy a standby of it. As with initdb, the files are not
// flushed one by one.
func (l *Local) copyFrom(ctx context.Context, primary string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, backupLimit, fmt.Errorf("not done within %v", backupLimit))
	defer cancel()
	var out bytes.Buffer
	cmd := l.command("pg_basebackup", "--dbname", primary, "--pgdata", l.dataFolder(), "--wal-method", "stream",
		"--checkpoint", "fast", "--write-recovery-conf", "--no-sync")
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := startProcess(cmd)
	if err == nil {
		err = p.wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("pgserver: pg_basebackup: %w\n%s", err, lastLines(out.String()))
	}
	return nil
}
