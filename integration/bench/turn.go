package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// stretch is what one contender has done in its turns.
type stretch struct {
	tally
	times   []time.Duration // of each delivery
	workers int
}

func (s *stretch) add(other stretch) {
	s.tally.add(other.tally)
	s.times = append(s.times, other.times...)
	s.workers = other.workers
}

// perSecond is the throughput in messages: all workers deliver one after the other, so together they have been at it for
// the sum of the times. What a worker that is done early waits for the others does not count against a contender.
func (s *stretch) perSecond() float64 {
	var busy time.Duration
	for _, t := range s.times {
		busy += t
	}
	return float64(s.processed+s.duplicates) * float64(s.workers) / busy.Seconds()
}

// turn lets the workers deliver until d is over, and once at least.
func (c contender) turn(ctx context.Context, ids source, workers int, d time.Duration) (stretch, error) {
	return c.together(ctx, workers, func(ctx context.Context, s *stretch) error { return c.work(ctx, ids, d, s) })
}

// share lets the workers make these deliveries, each taking the next one when it is done with its last.
func (c contender) share(ctx context.Context, deliveries [][]string, workers int) (stretch, error) {
	var taken atomic.Int64
	return c.together(ctx, workers, func(ctx context.Context, s *stretch) error {
		for i := taken.Add(1); i <= int64(len(deliveries)); i = taken.Add(1) {
			if err := c.deliverTimed(ctx, deliveries[i-1], s); err != nil {
				return err
			}
		}
		return nil
	})
}

// together runs the workers and adds up what they did.
func (c contender) together(
	ctx context.Context, workers int, work func(ctx context.Context, s *stretch) error,
) (stretch, error) {
	done := make([]stretch, workers)
	group, ctx := errgroup.WithContext(ctx)
	for i := range done {
		group.Go(func() error { return work(ctx, &done[i]) })
	}
	if err := group.Wait(); err != nil {
		return stretch{}, fmt.Errorf("%s: %w", c.name, err)
	}
	all := stretch{}
	for _, s := range done {
		all.add(s)
	}
	all.workers = workers
	return all, nil
}

// work is one worker's part of a turn. Making ids takes no time that counts.
func (c contender) work(ctx context.Context, ids source, d time.Duration, s *stretch) error {
	for begin := time.Now(); ; {
		if err := c.deliverTimed(ctx, ids.take(c.batch), s); err != nil {
			return err
		}
		if time.Since(begin) >= d {
			return nil
		}
	}
}

func (c contender) deliverTimed(ctx context.Context, ids []string, s *stretch) error {
	start := time.Now()
	got, err := c.deliver(ctx, ids)
	if err != nil {
		return err
	}
	s.times = append(s.times, time.Since(start))
	s.tally.add(got)
	return nil
}
