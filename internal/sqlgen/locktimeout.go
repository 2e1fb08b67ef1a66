package sqlgen

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// MaxLockTimeout is the longest lock_timeout that PostgreSQL takes: 2^31-1 milliseconds, a little under 25 days.
const MaxLockTimeout = math.MaxInt32 * time.Millisecond

// CheckLockTimeout says why d cannot be a bound for a wait, or returns nil.
func CheckLockTimeout(d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("is %s: it must be positive", d)
	}
	if d > MaxLockTimeout {
		return fmt.Errorf("is %s: PostgreSQL takes at most %s", d, MaxLockTimeout)
	}
	return nil
}

// LockTimeout writes d as a value for the server's lock_timeout. It rounds up to a millisecond, because the server rounds
// to one and takes 0 for "wait for ever".
func LockTimeout(d time.Duration) string {
	ms := (d + time.Millisecond - 1) / time.Millisecond
	return strconv.FormatInt(int64(ms), 10) + "ms"
}
