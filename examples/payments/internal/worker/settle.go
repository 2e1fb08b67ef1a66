package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/txidem/txidem-go/examples/payments/payment"
	"github.com/txidem/txidem-go/txidem"
	"github.com/txidem/txidem-go/txidem/envelope"
)

// handleBody decodes the message and hands it to the handler.
func (w *worker) handleBody(ctx context.Context, body []byte) error {
	msg, err := envelope.Decode(body)
	if err != nil {
		return err
	}
	return w.handle(ctx, msg)
}

// settle tells the broker what became of a delivery: processed or a duplicate, hopeless, or to be made again, at once
// unless txidem knows a better time. The stream keeps a message that was given up.
func settle(msg jetstream.Msg, err error) error {
	switch delay := txidem.RetryAfter(err); {
	case err == nil:
		err = msg.Ack()
	case hopeless(err):
		err = msg.TermWithReason(err.Error())
	case delay > 0:
		err = msg.NakWithDelay(delay)
	default:
		err = msg.Nak()
	}
	if err != nil {
		return fmt.Errorf("worker: settle a delivery: %w", err)
	}
	return nil
}

// hopeless reports whether the message would fail at every delivery.
func hopeless(err error) bool {
	var refused *envelope.Error
	return errors.As(err, &refused) || errors.Is(err, payment.ErrBadCommand) || !txidem.Retryable(err)
}
