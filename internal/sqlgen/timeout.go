package sqlgen

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// MaxTimeout is the longest timeout that PostgreSQL takes: 2^31-1 milliseconds, a little under 25 days.
const MaxTimeout = math.MaxInt32 * time.Millisecond

// CheckTimeout says why d cannot be a timeout, or returns nil.
func CheckTimeout(d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("is %s: it must be positive", d)
	}
	if d > MaxTimeout {
		return fmt.Errorf("is %s: PostgreSQL takes at most %s", d, MaxTimeout)
	}
	return nil
}

// Timeout writes d as a value for one of the server's timeouts. It rounds up to a millisecond, because the server rounds
// to one and takes 0 for "no limit".
func Timeout(d time.Duration) string {
	ms := (d + time.Millisecond - 1) / time.Millisecond
	return strconv.FormatInt(int64(ms), 10) + "ms"
}
