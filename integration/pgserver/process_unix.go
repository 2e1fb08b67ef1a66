//go:build unix

package pgserver

import "syscall"

// quitSignal is PostgreSQL's immediate shutdown: no checkpoint, yet every backend and the shared memory are cleaned up.
const quitSignal = syscall.SIGQUIT

// credential returns what makes a child run under the account, or nil for our own.
func credential(a *account) *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
}

// quit asks a server for an immediate shutdown.
func (p *process) quit() error { return p.cmd.Process.Signal(quitSignal) }
