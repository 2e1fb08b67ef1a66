package main

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm waits more exactly than time.Sleep, which takes 1.1 ms to sleep for 0.5 ms when nothing else goes on: the runtime
// waits in whole milliseconds. A timerfd becomes readable to the microsecond. It is used by one goroutine.
type alarm struct{ file *os.File }

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return &alarm{os.NewFile(uintptr(fd), "timerfd")}, nil
}

// wait returns after d.
func (a *alarm) wait(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	conn, err := a.file.SyscallConn()
	if err != nil {
		return err
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(d.Nanoseconds())}
	var setErr error
	err = conn.Control(func(fd uintptr) { setErr = unix.TimerfdSettime(int(fd), 0, &spec, nil) })
	if err := errors.Join(err, setErr); err != nil {
		return err
	}
	var expirations [8]byte
	_, err = a.file.Read(expirations[:])
	return err
}

func (a *alarm) close() error { return a.file.Close() }
