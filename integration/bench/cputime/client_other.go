//go:build !unix

package cputime

import (
	"fmt"
	"runtime"
	"time"
)

// Client returns an error: there is no getrusage here.
func Client() (time.Duration, error) {
	return 0, fmt.Errorf("%w: %s has no getrusage", ErrNotMeasurable, runtime.GOOS)
}
