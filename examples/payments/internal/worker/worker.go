package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/txidem/txidem-go/examples/payments/internal/broker"
	"github.com/txidem/txidem-go/examples/payments/payment"
)

// longestPause is the most that a message, and later its ack, spends on the simulated way between broker and worker. In
// one process on one machine that way takes no time at all, and a worker would hardly ever be caught on it. The pauses
// are the same for all three handlers, and nothing is right or wrong because of them.
const longestPause = 4 * time.Millisecond

// Run consumes the stream until lifeline ends, which is when the parent closes it or dies. It reports to reports.
func Run(ctx context.Context, cfg Config, lifeline io.Reader, reports io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, lifeline)
		cancel()
	}()
	err := run(ctx, cfg, reports)
	if ctx.Err() != nil {
		return nil // asked to end
	}
	return err
}

func run(ctx context.Context, cfg Config, reports io.Writer) error {
	pool, err := openPool(ctx, cfg, reports)
	if err != nil {
		return fmt.Errorf("worker: open the database: %w", err)
	}
	defer pool.Close()
	guard, err := newGuard(ctx, pool, cfg.Schema)
	if err != nil {
		return fmt.Errorf("worker: make the guard: %w", err)
	}
	handle, err := cfg.Mode.handler(pool, guard)
	if err != nil {
		return err
	}
	conn, err := nats.Connect(cfg.BrokerURL)
	if err != nil {
		return fmt.Errorf("worker: connect to the broker: %w", err)
	}
	defer conn.Close()
	w := &worker{
		handle:  handle,
		reports: reports,
		pauses:  rand.New(rand.NewPCG(cfg.Seed, uint64(cfg.Number))), //nolint:gosec // pauses, and numbers from 0
	}
	return w.consume(ctx, conn, cfg.Stream)
}

// worker processes one message at a time.
type worker struct {
	handle  payment.Handler
	reports io.Writer
	pauses  *rand.Rand
}

// messages returns what the consumer of the stream hands out.
func messages(ctx context.Context, conn *nats.Conn, stream string) (jetstream.MessagesContext, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	consumer, err := js.Consumer(ctx, stream, broker.Consumer)
	if err != nil {
		return nil, fmt.Errorf("worker: find the consumer: %w", err)
	}
	msgs, err := consumer.Messages(jetstream.PullMaxMessages(1))
	if err != nil {
		return nil, fmt.Errorf("worker: consume: %w", err)
	}
	return msgs, nil
}

// consume takes messages, one at a time, until ctx ends.
func (w *worker) consume(ctx context.Context, conn *nats.Conn, stream string) error {
	msgs, err := messages(ctx, conn, stream)
	if err != nil {
		return err
	}
	defer msgs.Stop()
	w.report(Ready, nil)
	for {
		msg, err := msgs.Next(jetstream.NextContext(ctx))
		switch {
		case errors.Is(err, jetstream.ErrNoHeartbeat):
			continue // a busy machine; the pull is made again
		case err != nil:
			return fmt.Errorf("worker: take the next message: %w", err)
		}
		if err := w.process(ctx, msg); err != nil {
			return err
		}
	}
}

// process is one delivery, from its arrival to its ack.
func (w *worker) process(ctx context.Context, msg jetstream.Msg) error {
	w.pause()
	w.report(Received, nil)
	err := w.handleBody(ctx, msg.Data())
	if err != nil {
		w.report(Failed, err)
	}
	w.pause()
	if err == nil {
		w.report(Acking, nil)
	}
	return settle(msg, err)
}

func (w *worker) pause() { time.Sleep(time.Duration(w.pauses.Int64N(int64(longestPause)))) }

func (w *worker) report(stage Stage, err error) {
	r := Report{Stage: stage}
	if err != nil {
		r.Text = err.Error()
	}
	r.write(w.reports)
}
