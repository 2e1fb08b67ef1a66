package txidem

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Observer is told what became of a message, once for each delivery of it, and in a batch once for each of its messages,
// after the connection has been released. It is called by the goroutine of the delivery, for many deliveries at once, and
// delays the ack while it runs. A panic in it is dropped: it changes no outcome.
//
// What [Guard.ClaimTx] and [Guard.ClaimSQL] claim is told when the claim is made, with the outcome Claimed and no attempts:
// the owner of the transaction decides about the rest.
type Observer func(ctx context.Context, e DeliveryEvent)

// DeliveryEvent is what an [Observer] is told.
type DeliveryEvent struct {
	Consumer string // empty in the seen-set mode over a Store that is no Guard
	ID       string // the message id, verbatim

	// Outcome is the zero value when Err is set.
	Outcome Outcome

	// Err is what the caller got. When the handler panicked or called runtime.Goexit, it is an error that says so.
	Err error

	// RememberErr is set when, in the seen-set mode, the handler succeeded and the id could not be remembered. The delivery
	// was acked; another copy of the message would run the handler again.
	RememberErr error

	// Attempts is how often the handler was called, by a pipeline's duplicate too; in a batch, with this message.
	Attempts int

	// Claim is the time that passed before the handler, in all attempts: for a connection, BEGIN and the claim, or for the
	// look into the seen-set. In a pipeline it ends when the server has answered to the claim, and has most of the answer to
	// the statements in it. Handler is the time in the handler, in all attempts. Total is the time from the start until
	// the connection was released, pauses included. All messages of a batch have the durations of the whole batch.
	Claim, Handler, Total time.Duration
}

// SlogObserver logs every delivery to l: what was processed, claimed or a duplicate at debug level, copies in flight at info
// level, messages without an id and ids that could not be remembered at warning level, other errors at error level. Ids of
// more than 64 bytes are cut.
func SlogObserver(l *slog.Logger) Observer {
	return func(ctx context.Context, e DeliveryEvent) {
		l.LogAttrs(ctx, e.level(), "txidem delivery", e.attrs()...)
	}
}

func (e DeliveryEvent) level() slog.Level {
	switch {
	case errors.Is(e.Err, ErrInFlight):
		return slog.LevelInfo
	case e.Err != nil:
		return slog.LevelError
	case e.RememberErr != nil || e.Outcome == Unguarded:
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}

func (e DeliveryEvent) attrs() []slog.Attr {
	attrs := []slog.Attr{
		slog.String("consumer", e.Consumer),
		slog.String("message_id", cut(e.ID)),
		slog.String("outcome", e.Outcome.String()),
		slog.Int("attempts", e.Attempts),
		slog.Duration("claim", e.Claim),
		slog.Duration("handler", e.Handler),
		slog.Duration("total", e.Total),
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	if e.RememberErr != nil {
		attrs = append(attrs, slog.Any("remember_error", e.RememberErr))
	}
	return attrs
}

// errUnfinished is what an observer is told when the handler did not return.
var errUnfinished = errors.New("txidem: the handler panicked or called runtime.Goexit")

// observe makes a delivery by run, which notes in e how it went, and tells the observer, if there is one.
func (o Observer) observe(ctx context.Context, e *DeliveryEvent, run func() (Outcome, error)) (Outcome, error) {
	start := time.Now()
	e.Err = errUnfinished
	defer func() {
		e.Total = time.Since(start)
		o.tell(ctx, *e)
	}()
	e.Outcome, e.Err = run()
	return e.Outcome, e.Err
}

// tell calls the observer and keeps its panic from changing what the delivery became.
func (o Observer) tell(ctx context.Context, e DeliveryEvent) {
	if o == nil {
		return
	}
	defer func() { _ = recover() }()
	o(ctx, e)
}

// callPlain calls a handler that has no transaction.
func (e *DeliveryEvent) callPlain(handler func() error) error { return e.call(&held{}, handler) }

// call calls the handler, which has the context h, and books the call.
func (e *DeliveryEvent) call(h *held, handler func() error) error {
	e.Attempts++
	start := time.Now()
	defer func() {
		h.ended.Store(true)
		e.Handler += time.Since(start)
	}()
	return handler()
}
