package broker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// AckWait is how long the broker waits for an ack before it delivers a message again. It is short, so that the message
// of a killed worker comes back soon.
const AckWait = 2 * time.Second

// publishBatch is how many messages are sent before their acks are waited for.
const publishBatch = 500

// Consumer is the name of the one durable consumer of every stream.
const Consumer = "ledger"

// Stream is a stream with its consumer.
type Stream struct {
	name      string
	js        jetstream.JetStream
	consumer  jetstream.Consumer
	published int
}

// CreateStream makes a stream and its consumer: explicit acks, and delivery without end until the ack comes.
func (s *Server) CreateStream(ctx context.Context, name string) (*Stream, error) {
	_, err := s.js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{name}})
	if err != nil {
		return nil, fmt.Errorf("broker: create stream %s: %w", name, err)
	}
	consumer, err := s.js.CreateConsumer(ctx, name, jetstream.ConsumerConfig{
		Durable:   Consumer,
		AckPolicy: jetstream.AckExplicitPolicy,
		AckWait:   AckWait,
	})
	if err != nil {
		return nil, fmt.Errorf("broker: create the consumer of stream %s: %w", name, err)
	}
	return &Stream{name: name, js: s.js, consumer: consumer}, nil
}

// Name returns the name of the stream.
func (s *Stream) Name() string { return s.name }

// Publish stores bodies in their order. They carry no Nats-Msg-Id, so the broker keeps every copy.
func (s *Stream) Publish(ctx context.Context, bodies [][]byte) error {
	for batch := range slices.Chunk(bodies, publishBatch) {
		if err := s.publishBatch(ctx, batch); err != nil {
			return fmt.Errorf("broker: publish to stream %s: %w", s.name, err)
		}
		s.published += len(batch)
	}
	return nil
}

// publishBatch sends bodies one after another and then waits for the broker's acks.
func (s *Stream) publishBatch(ctx context.Context, bodies [][]byte) error {
	acks := make([]jetstream.PubAckFuture, len(bodies))
	for i, body := range bodies {
		var err error
		if acks[i], err = s.js.PublishAsync(s.name, body); err != nil {
			return err
		}
	}
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// State is how far the consumer of a stream has come.
type State struct {
	Published  int // messages in the stream, copies included
	Settled    int // of these, acked
	Deliveries int // made so far, redeliveries included
}

// Drained reports whether every message is acked.
func (s State) Drained() bool { return s.Settled == s.Published }

// State asks the broker.
func (s *Stream) State(ctx context.Context) (State, error) {
	info, err := s.consumer.Info(ctx)
	if err != nil {
		return State{}, fmt.Errorf("broker: ask for the state of stream %s: %w", s.name, err)
	}
	return State{
		Published:  s.published,
		Settled:    s.published - int(info.NumPending) - info.NumAckPending, //nolint:gosec // at most s.published
		Deliveries: int(info.Delivered.Consumer),                            //nolint:gosec // far below the limits of an int
	}, nil
}
