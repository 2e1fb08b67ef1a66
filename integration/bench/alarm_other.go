//go:build !linux

package main

import "time"

// alarm waits as exactly as time.Sleep does, which is a millisecond or so on most systems. It is used by one goroutine.
type alarm struct{}

func newAlarm() (*alarm, error) { return &alarm{}, nil }

// wait returns after d.
func (*alarm) wait(d time.Duration) error {
	time.Sleep(d)
	return nil
}

func (*alarm) close() error { return nil }
