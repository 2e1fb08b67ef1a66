//go:build !linux

package faults

import "syscall"

// workerAttr asks for nothing: a worker ends when its standard input does, and that is when this process dies.
func workerAttr() *syscall.SysProcAttr { return nil }
