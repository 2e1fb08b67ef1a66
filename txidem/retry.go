package txidem

import (
	"errors"
	"time"
)

// Retryable reports whether delivering the message again can help. It is false for nil and for errors that come back
// with every delivery: an id that cannot be stored, a handler that ends the transaction, a guard inside a guard. It is
// true for everything else, the handler's own errors included, about which txidem knows nothing: wrap those that are
// permanent in an error of your own and ask for it first.
// An error that is not retryable still means that the message was not processed as a whole: park it, do not ack it away.
func Retryable(err error) bool {
	for _, permanent := range []error{ErrInvalidID, ErrTxControl, ErrAlreadyClaimed} {
		if errors.Is(err, permanent) {
			return false
		}
	}
	return err != nil
}

// serverDelay is what RetryAfter says when the server was away or lacks the table: a second is enough for a
// restart or a failover to make progress, and keeps a queue of failing messages from turning into a busy loop.
const serverDelay = time.Second

// RetryAfter suggests when to have the message delivered again: after the wait for a message in flight, a second when the
// server was away, a COMMIT is unknown or the table is missing, and 0, leaving it to the broker, for everything else. It says nothing for errors that are not
// [Retryable].
func RetryAfter(err error) time.Duration {
	var inFlight *InFlightError
	switch {
	case !Retryable(err):
		return 0
	case errors.As(err, &inFlight):
		return max(inFlight.Wait, serverDelay)
	case errors.Is(err, ErrCommitUnknown), errors.Is(err, ErrNoTable), serverAway(err):
		return serverDelay
	default:
		return 0
	}
}
