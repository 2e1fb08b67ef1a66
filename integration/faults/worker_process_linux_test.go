package faults

import "syscall"

// workerAttr makes the kernel kill a worker when the thread that started it ends, and that is at the latest when this
// process does. The goroutine of a worker holds its thread until the worker is gone.
func workerAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
