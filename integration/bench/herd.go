package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/txidem/txidem-go/txidem"
)

// herdWait is how long a copy may wait for the first one: longer than anything here takes.
const herdWait = time.Minute

// herd delivers many copies of one message at once. One of them holds the claim until it is let go.
type herd struct {
	lab   *lab
	pool  *pgxpool.Pool
	guard *txidem.Guard
	size  int

	group   *errgroup.Group
	release chan struct{}
	letGo   func() // may be called again
	begun   time.Time

	mu       sync.Mutex
	answered []time.Duration // since begun
	total    tally
}

func newHerd(ctx context.Context, l *lab, size int) (*herd, error) {
	pool, err := l.pool(ctx, loopback, size, nil)
	if err != nil {
		return nil, err
	}
	guard, err := txidem.New(pool, &txidem.Config{Consumer: consumer, InFlightWait: herdWait})
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &herd{lab: l, pool: pool, guard: guard, size: size}, nil
}

// gather starts a new herd and returns when all of it waits for the first copy, whose handler is done with its work.
func (h *herd) gather(ctx context.Context) error {
	h.answered, h.total = nil, tally{}
	h.group, ctx = errgroup.WithContext(ctx)
	h.release = make(chan struct{})
	h.letGo = sync.OnceFunc(h.begin)
	err := h.line(ctx, source{}.take(1)[0])
	if err != nil {
		h.letGo()
		return errors.Join(err, h.group.Wait())
	}
	return nil
}

func (h *herd) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = time.Now()
	close(h.release)
}

// line puts the first copy to its place, and the others behind it.
func (h *herd) line(ctx context.Context, id string) error {
	inside := make(chan struct{})
	h.group.Go(func() error { return h.deliver(ctx, id, sync.OnceFunc(func() { close(inside) })) })
	select {
	case <-inside:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for range h.size - 1 {
		h.group.Go(func() error { return h.deliver(ctx, id, func() {}) })
	}
	return h.lab.lockWaiters(ctx, h.size-1)
}

// deliver calls inside when the handler has done its work.
func (h *herd) deliver(ctx context.Context, id string, inside func()) error {
	got, err := one(h.guard.Process(ctx, id, func(ctx context.Context, tx pgx.Tx) error {
		if err := effect(ctx, tx, id); err != nil {
			return err
		}
		inside()
		<-h.release
		return nil
	}))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answered = append(h.answered, time.Since(h.begun))
	h.total.add(got)
	return err
}

// wait returns how long after the end of the handler each copy was answered.
func (h *herd) wait() ([]time.Duration, error) {
	h.letGo()
	if err := h.group.Wait(); err != nil {
		return nil, err
	}
	if want := (tally{1, h.size - 1}); h.total != want {
		return nil, fmt.Errorf("%+v of %d copies in flight, want %+v", h.total, h.size, want)
	}
	return h.answered, nil
}

// lockWaiters returns when n sessions of the database wait for a lock.
func (l *lab) lockWaiters(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, herdWait/2)
	defer cancel()
	for waiting := 0; waiting < n; {
		err := l.own.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		if err != nil {
			return fmt.Errorf("wait until %d copies wait, %d do: %w", n, waiting, err)
		}
	}
	return nil
}
