package pgserver

import (
	"context"
	"os/exec"
	"runtime"
)

// process is a child process and the goroutine that waits for it.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed once the process is gone
	err    error         // how it ended; read it after exited is closed
}

// startProcess starts cmd. On Linux the parent-death signal in cmd is tied to the thread that forks, not to the process:
// it is sent when that thread ends, which the Go runtime may let happen at any time. So one goroutine, locked to its
// thread, both starts the child and waits for it.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// wait returns how the process ended. When ctx ends first, the process is killed.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.exited:
		return p.err
	case <-ctx.Done():
		p.kill()
		return context.Cause(ctx)
	}
}

// kill ends the process with SIGKILL (on Windows: TerminateProcess) and returns once it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only for a process that is gone already
	<-p.exited
}

// running reports whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}
