package txidem

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Observer is told of every delivery that went through [Guard.Process], [Guard.Pipeline], [Wrap], [WrapPipeline],
// [WrapBatch] or [WrapSeen], once, after its connection has been released. It is called by the goroutine of the delivery, for many deliveries at once, and delays the ack while
// it runs. A panic in it is dropped: it changes no outcome. What [Guard.ClaimTx] joins is decided by the owner of the
// transaction and not observed.
type Observer func(ctx context.Context, d Delivery)

// Delivery is what an Observer is told.
type Delivery struct {
	Consumer string // empty in the seen-set mode over a Store that is no Guard
	ID       string // the message id, verbatim

	// Outcome is the zero value when Err is set.
	Outcome Outcome

	// Err is what the caller got. When the handler panicked or called runtime.Goexit, it is an error that says so.
	Err error

	// RememberErr is set when, in the seen-set mode, the handler succeeded and the id could not be remembered. The delivery
	// was acked; another copy of the message would run the handler again.
	RememberErr error

	Attempts int // how often the handler was called, by a pipeline's duplicate too; in a batch, with this message

	// Claim is the time from the start until the handler could run: pool, BEGIN, claim; or the look into the seen-set. In a
	// pipeline it is the time until the server had answered to everything. Handler is the time in the handler, over all
	// attempts, and Total that from the start until the connection was released. A batch has one time for all its
	// messages.
	Claim, Handler, Total time.Duration
}

// SlogObserver logs every delivery to l: duplicates and processed messages at debug level, unguarded ones and ids that
// could not be remembered at warning level, errors at error level.
func SlogObserver(l *slog.Logger) Observer {
	return func(ctx context.Context, d Delivery) {
		l.LogAttrs(ctx, d.level(), "txidem delivery", d.attrs()...)
	}
}

func (d Delivery) level() slog.Level {
	switch {
	case d.Err != nil:
		return slog.LevelError
	case d.RememberErr != nil || d.Outcome == Unguarded:
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}

func (d Delivery) attrs() []slog.Attr {
	attrs := []slog.Attr{
		slog.String("consumer", d.Consumer),
		slog.String("message_id", d.ID),
		slog.String("outcome", d.Outcome.String()),
		slog.Int("attempts", d.Attempts),
		slog.Duration("claim", d.Claim),
		slog.Duration("handler", d.Handler),
		slog.Duration("total", d.Total),
	}
	if d.Err != nil {
		attrs = append(attrs, slog.Any("error", d.Err))
	}
	if d.RememberErr != nil {
		attrs = append(attrs, slog.Any("remember_error", d.RememberErr))
	}
	return attrs
}

// errUnfinished is what an observer is told when the handler did not return.
var errUnfinished = errors.New("txidem: the handler panicked or called runtime.Goexit")

// observe makes a delivery by run, which notes in d how it went, and tells the observer, if there is one.
func (o Observer) observe(ctx context.Context, d *Delivery, run func() (Outcome, error)) (Outcome, error) {
	start := time.Now()
	d.Err = errUnfinished
	defer func() {
		d.Total = time.Since(start)
		o.tell(ctx, *d)
	}()
	d.Outcome, d.Err = run()
	return d.Outcome, d.Err
}

// tell calls the observer and keeps its panic from changing what the delivery became.
func (o Observer) tell(ctx context.Context, d Delivery) {
	if o == nil {
		return
	}
	defer func() { _ = recover() }()
	o(ctx, d)
}

// call calls the handler and books the call.
func (d *Delivery) call(handler func() error) error {
	d.Attempts++
	start := time.Now()
	defer func() { d.Handler += time.Since(start) }()
	return handler()
}
