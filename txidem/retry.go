package txidem

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/txidem/txidem-go/internal/handlertx"
)

// permanentError is an error that its handler has called permanent.
type permanentError struct{ err error }

func (p *permanentError) Error() string { return p.err.Error() }

func (p *permanentError) Unwrap() error { return p.err }

// Permanent marks an error of the handler's own as one that comes back with every delivery, such as a command that breaks a
// rule of the business: [Retryable] is false for it, [Settle] says Park, and a retry inside the delivery is not made. It
// returns nil for nil. The error is as it was otherwise, text and chain.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err: err}
}

func isPermanent(err error) bool {
	var permanent *permanentError
	return errors.As(err, &permanent)
}

// Retryable reports whether delivering the message again can help. It is false for nil and for errors that come back
// with every delivery: an id that cannot be stored ([ErrInvalidID]), a mistake of the program ([ErrMisuse]), and what the
// handler has marked as [Permanent]. It is true for everything else, the handler's other errors included, about which
// nothing is known. An error that is not retryable still means that the message was not processed as a whole: park it, do
// not ack it away.
func Retryable(err error) bool {
	return err != nil && !errors.Is(err, ErrInvalidID) && !errors.Is(err, handlertx.ErrMisuse) && !isPermanent(err)
}

// minRetryAfter is the least time to the next delivery: enough for a restart or a failover to make progress, and to keep a
// failing message from turning into a busy loop. maxRetryAfter bounds its growth.
const (
	minRetryAfter = time.Second
	maxRetryAfter = time.Minute
)

// RetryAfter suggests how long to wait before the message is delivered again: [Config.InFlightWait] when a copy of it
// was in flight, and never less than a second, so that a message that fails is not redelivered in a loop. It is 0 for nil
// and for errors that are not [Retryable]. See [Settle] for a time that grows.
func RetryAfter(err error) time.Duration {
	if !Retryable(err) {
		return 0
	}
	var inFlight *InFlightError
	if errors.As(err, &inFlight) {
		return max(inFlight.Wait, minRetryAfter)
	}
	return minRetryAfter
}

// Action is what a consumer tells its broker about a message. The zero value is none of them.
type Action int

const (
	// Ack means that the message is done with.
	Ack Action = iota + 1

	// Redeliver means that the message is to be delivered again, after [Settlement.After].
	Redeliver

	// Park means that no redelivery helps: put the message where somebody looks at it, a dead letter queue, and ack it.
	Park
)

// String returns "ack", "redeliver", "park", or "none" for anything else.
func (a Action) String() string {
	switch a {
	case Ack:
		return "ack"
	case Redeliver:
		return "redeliver"
	case Park:
		return "park"
	default:
		return "none"
	}
}

// Settlement is what [Settle] says.
type Settlement struct {
	Action Action

	// After is when to deliver the message again; 0 unless Action is Redeliver.
	After time.Duration

	// InFlight says that the error is ErrInFlight: a copy of the message is at work, as far as was seen, and this is no
	// failure: where the broker counts deliveries and drops a message after so many, it should not count.
	InFlight bool
}

// Settle says what a consumer tells its broker after a delivery that ended in err, nil included. deliveries is how often the
// broker has delivered the message, this time included, or 0 where that is not known.
//
// The time to the next delivery begins with [RetryAfter] and doubles with each delivery, up to a minute. For a copy in
// flight it does not grow: it is there to be found done. It is drawn from the upper half, so that messages that failed
// together do not come back together. How many deliveries are too many is for the broker, or the caller, to say: Park only
// follows from an error that is not [Retryable].
func Settle(err error, deliveries int) Settlement {
	switch {
	case err == nil:
		return Settlement{Action: Ack}
	case !Retryable(err):
		return Settlement{Action: Park}
	}
	inFlight := errors.Is(err, ErrInFlight)
	after := RetryAfter(err)
	if !inFlight {
		for n := 1; n < deliveries && after < maxRetryAfter; n++ {
			after = min(2*after, maxRetryAfter)
		}
	}
	after = after/2 + rand.N(after/2+1) //nolint:gosec // jitter, not a secret
	return Settlement{Action: Redeliver, After: after, InFlight: inFlight}
}
