package txidem

import (
	"context"
	"errors"
)

// next says how a delivery goes on after an attempt.
type next int

const (
	stop   next = iota // the result stands
	theirs             // the result stands, and is the handler's doing or the message's: another message may fare better
	rerun              // run the handler again: costs an attempt
	soon               // the handler did not run and a moment is enough: the connection was a dead one of the pool
	later              // the handler did not run and the server is away
	once               // the handler did not run, and a repetition either helps at once or nothing does
)

// stands reports whether the result is final.
func (n next) stands() bool { return n == stop || n == theirs }

// theirsUnless is theirs, unless the context has ended: nobody is to blame for what is left undone then.
func theirsUnless(ctx context.Context) next {
	if ctx.Err() != nil {
		return stop
	}
	return theirs
}

// beforeHandler judges a failure before the handler ran. lost says that it closed the connection.
func beforeHandler(ctx context.Context, err error, lost bool) next {
	switch {
	case ctx.Err() == nil && ofCopy(err):
		return theirs
	case ctx.Err() != nil, errors.Is(err, ErrInFlight), errors.Is(err, ErrCommitUnknown):
		return stop
	case conflicted(err), lost:
		return soon
	case serverAway(err):
		return later
	case stale(err), errors.Is(err, ErrNoRecord): // the record was deleted between the claim and the look, perhaps
		return once
	default:
		return stop
	}
}

// afterHandler judges a handler that failed. Its own errors stand; what befell its transaction is tried again. lost is the
// error of the statement that saw the connection close, if one did.
func afterHandler(ctx context.Context, err, misuse, lost error, closed bool) next {
	switch {
	case ctx.Err() != nil, errors.Is(misuse, errEnded): // what the handler committed itself, nobody knows
		return stop
	case misuse != nil:
		return theirs
	case conflicted(err), closed && fatal(err):
		return rerun
	case lost != nil && !ofContext(lost) && !unsendable(lost) && !ofContext(err):
		return rerun
	default:
		return theirs
	}
}
