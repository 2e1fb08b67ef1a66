package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Effort is what a contender costs the processors of client and server, on loopback with synchronous_commit=off: medians
// over its turns. It says more than a time on the wall, which swings with what else the machine does. Processor times are
// microseconds a message.
type Effort struct {
	Contender string  `json:"contender"`
	Workers   int     `json:"workers"`
	Batch     int     `json:"batch"`
	Turns     int     `json:"turns"`
	Messages  int     `json:"messages_per_turn"`
	P50       float64 `json:"p50_ms"` // of all deliveries
	PerSecond float64 `json:"messages_per_second"`
	Client    reading `json:"client_us"`
	Server    reading `json:"server_us"`
	Both      reading `json:"both_us"`
	Missing   string  `json:"not_measurable,omitempty"` // why a processor time is null

	// Medians of the ratios in each round.
	Ratio     reading `json:"both_to_plain"`
	RowsRatio reading `json:"both_to_100_rows_in_one_plain_transaction"`
	RateRatio float64 `json:"messages_per_second_to_plain"`
}

// effort measures every contender's Effort with one number of workers.
func (l *lab) effort(ctx context.Context, p plan, workers int) ([]Effort, error) {
	ids, err := l.fresh(ctx, 0)
	if err != nil {
		return nil, err
	}
	pool, err := l.pool(ctx, asyncLoop, workers, nil)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	c, err := newClient(pool)
	if err != nil {
		return nil, err
	}
	run := newEffortRun(c.contenders(), ids, workers)
	if err := run.measure(ctx, p, pool); err != nil {
		return nil, fmt.Errorf("processor time, %d workers: %w", workers, err)
	}
	effects, records := run.expected()
	if err := l.audit(ctx, effects, records); err != nil {
		return nil, fmt.Errorf("processor time, %d workers: %w", workers, err)
	}
	return run.efforts(), nil
}

// connect makes all connections of a pool, which it otherwise does in its own time.
func connect(ctx context.Context, pool *pgxpool.Pool) error {
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
	}
	return nil
}
