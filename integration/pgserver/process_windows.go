package pgserver

import "syscall"

// childAttr puts a child into a process group of its own, so that a Ctrl-C in the console reaches the parent only.
func childAttr(*account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// quit ends a server at once: Windows has no signal for it. Its backends notice and end as well.
func (p *process) quit() error { return p.cmd.Process.Kill() }
