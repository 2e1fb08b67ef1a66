package pgserver

import "syscall"

// childAttr makes a child run under the given account (nil: our own), in a process group of its own, so that a Ctrl-C in
// the terminal reaches the parent only, and makes the kernel send it SIGQUIT when we die.
func childAttr(a *account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: credential(a), Setpgid: true, Pdeathsig: quitSignal}
}
