package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/txidem/txidem-go/integration/bench/cputime"
)

// lane is a contender's consumer with what it has done.
type lane struct {
	*contender
	consumer consumer
	before   int // effects that were there
	size     int // messages in a turn
	done     int // messages in all
	times    []time.Duration
	turns    []turn
}

// turn is what one took.
type turn struct {
	cputime.Spent
	missing  string // why processor time cannot be read, or empty
	messages int
}

// sizings is how often the size of a turn is tried. The first ones warm up, and the most counts.
const sizings = 4

// newLane begins a consumer, warms it up and finds out how many messages fit into a slice.
func newLane(ctx context.Context, c *contender, p plan, sync bool) (*lane, error) {
	before, err := c.database.effects(ctx, "")
	if err != nil {
		return nil, err
	}
	l := &lane{contender: c, before: before}
	if l.consumer, err = c.consumer(ctx, 1, sync); err != nil {
		return nil, err
	}
	for range sizings {
		n := 0
		for begin := time.Now(); n == 0 || time.Since(begin) < p.slice; n++ {
			if err := l.deliver(ctx, uuid.NewString()); err != nil {
				return nil, err
			}
		}
		l.size = max(l.size, n)
	}
	return l, nil
}

// turn delivers as many new messages as fit. Their ids are made before.
func (l *lane) turn(ctx context.Context) error {
	ids := make([]string, l.size)
	for i := range ids {
		ids[i] = uuid.NewString()
	}
	meter, err := cputime.NewMeter(ctx, l.database.own)
	if err != nil {
		return err
	}
	before, err := meter.Read()
	if err != nil {
		return err
	}
	if err := l.deliverAll(ctx, ids); err != nil {
		return err
	}
	after, err := meter.Read()
	l.turns = append(l.turns, turn{after.Since(before), meter.Missing(), len(ids)})
	return err
}

func (l *lane) deliverAll(ctx context.Context, ids []string) error {
	for _, id := range ids {
		start := time.Now()
		if err := l.deliver(ctx, id); err != nil {
			return err
		}
		l.times = append(l.times, time.Since(start))
	}
	return nil
}

func (l *lane) deliver(ctx context.Context, id string) error {
	l.done++
	if err := l.consumer.deliver(ctx, id); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	return nil
}

// audit counts the effects.
func (l *lane) audit(ctx context.Context) error {
	n, err := l.database.effects(ctx, "")
	if err == nil && n != l.before+l.done {
		err = fmt.Errorf("%s: %d effects of %d messages", l.name, n-l.before, l.done)
	}
	return err
}
