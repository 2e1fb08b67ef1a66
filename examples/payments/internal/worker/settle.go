package worker

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/txidem/txidem-go/txidem"
	"github.com/txidem/txidem-go/txidem/envelope"
)

// handleBody decodes the message and hands it to the handler. No redelivery makes a body readable.
func (w *worker) handleBody(ctx context.Context, body []byte) error {
	msg, err := envelope.Decode(body)
	if err != nil {
		return txidem.Permanent(err)
	}
	return w.handle(ctx, msg)
}

// settle tells the broker what became of a delivery: done with, to be delivered again after a while, or never again. The
// stream keeps a message that was given up.
func settle(msg jetstream.Msg, err error) error {
	switch s := txidem.Settle(err, deliveries(msg)); s.Action {
	case txidem.Ack:
		err = msg.Ack()
	case txidem.Park:
		err = msg.TermWithReason(err.Error())
	default:
		err = msg.NakWithDelay(s.After)
	}
	if err != nil {
		return fmt.Errorf("worker: settle a delivery: %w", err)
	}
	return nil
}

// deliveries says how often the broker has delivered the message, or 0 when it does not say.
func deliveries(msg jetstream.Msg) int {
	meta, err := msg.Metadata()
	if err != nil {
		return 0
	}
	return int(min(meta.NumDelivered, 1000))
}
