package fleet

import "syscall"

// childAttr makes the kernel kill the worker when this process dies, should the worker be too busy to see the end of its
// standard input.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
