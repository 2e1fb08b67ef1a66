//go:build !linux

package fleet

import "syscall"

// childAttr asks for nothing: a worker ends when its standard input does, and that is when this process dies.
func childAttr() *syscall.SysProcAttr { return nil }
