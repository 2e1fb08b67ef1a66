//go:build unix

package cputime

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Client returns the processor time that this process has used, in user and in kernel mode.
func Client() (time.Duration, error) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("%w: getrusage: %w", ErrNotMeasurable, err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
