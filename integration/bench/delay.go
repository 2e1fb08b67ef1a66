package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Delay is what a proxy really adds to a round trip.
type Delay struct {
	Place string  `json:"place"`
	Added float64 `json:"added_p50_ms"`
}

// delays compares pings through each proxy with direct ones, in turns.
func (l *lab) delays(ctx context.Context, p plan) ([]Delay, error) {
	var all []Delay
	for _, at := range p.places {
		if at.Delay == 0 {
			continue
		}
		added, err := l.added(ctx, at, p.pings)
		if err != nil {
			return nil, fmt.Errorf("measure the delay of %s: %w", at.Name, err)
		}
		all = append(all, Delay{at.Name, added})
	}
	return all, nil
}

// added returns the difference of two medians in milliseconds.
func (l *lab) added(ctx context.Context, at place, n int) (float64, error) {
	direct, err := l.pool(ctx, loopback, 1, nil)
	if err != nil {
		return 0, err
	}
	defer direct.Close()
	delayed, err := l.pool(ctx, at, 1, nil)
	if err != nil {
		return 0, err
	}
	defer delayed.Close()
	var near, far []float64
	for range n {
		if err := ping(ctx, direct, &near); err != nil {
			return 0, err
		}
		if err := ping(ctx, delayed, &far); err != nil {
			return 0, err
		}
	}
	return median(far) - median(near), nil
}

// ping makes one round trip and notes its milliseconds.
func ping(ctx context.Context, pool *pgxpool.Pool, into *[]float64) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	start := time.Now()
	err = conn.Ping(ctx)
	*into = append(*into, time.Since(start).Seconds()*1000)
	return err
}
