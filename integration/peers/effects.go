package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Effects is how many effects one message had when it was delivered more than once. The right number is always one.
type Effects struct {
	Contender string `json:"contender"`
	Copies    int    `json:"copies"` // of one message, delivered at once to two consumers

	AtOnce    int `json:"effects_of_copies_at_once"`
	Errors    int `json:"copies_answered_by_an_error"` // and so delivered again later
	Failed    int `json:"effects_after_a_failed_delivery"`
	Restarted int `json:"effects_after_a_restart"`
}

// tryAll counts the effects of every contender.
func tryAll(ctx context.Context, all []*contender, p plan) ([]Effects, error) {
	var found []Effects
	for _, c := range all {
		e, err := c.try(ctx, p)
		c.rest()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		found = append(found, e)
	}
	return found, nil
}

func (c *contender) try(ctx context.Context, p plan) (e Effects, err error) {
	e = Effects{Contender: c.name, Copies: p.copies}
	if e.AtOnce, e.Errors, err = c.atOnce(ctx, p); err != nil {
		return e, err
	}
	if e.Failed, err = c.failed(ctx); err != nil {
		return e, err
	}
	e.Restarted, err = c.restarted(ctx)
	return e, err
}

// tryLimit bounds a delivery.
const tryLimit = time.Minute

// atOnce delivers copies of one message at the same time, by turns to two consumers. Other messages come before, so that
// every connection is warm.
func (c *contender) atOnce(ctx context.Context, p plan) (effects, failed int, err error) {
	defer c.rest()
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	var fleet [2]consumer
	for i := range fleet {
		if fleet[i], err = c.consumer(ctx, p.copies, true); err != nil {
			return 0, 0, err
		}
	}
	c.handler.pause.Store(int64(p.pause))
	defer c.handler.pause.Store(0)
	for range warmRounds {
		together(ctx, fleet[:], p.copies, uuid.NewString)
	}
	id := uuid.NewString()
	failed = together(ctx, fleet[:], p.copies, func() string { return id })
	effects, err = c.database.effects(ctx, id)
	return effects, failed, err
}

// warmRounds is how often as many different messages come at once.
const warmRounds = 3

// together makes n deliveries at the same time, by turns to the consumers, and returns how many of them failed.
func together(ctx context.Context, fleet []consumer, n int, id func() string) int {
	var failed atomic.Int64
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		consumer, id := fleet[i%len(fleet)], id()
		group.Go(func() {
			<-start
			if consumer.deliver(ctx, id) != nil {
				failed.Add(1)
			}
		})
	}
	close(start)
	group.Wait()
	return int(failed.Load())
}

// failed delivers a message whose handler fails once, after its INSERT. If that is not tried again within the delivery,
// the message comes again, as from a broker.
func (c *contender) failed(ctx context.Context) (int, error) {
	defer c.rest()
	n, err := c.consumer(ctx, 1, true)
	if err != nil {
		return 0, err
	}
	id := uuid.NewString()
	c.handler.failures.Store(1)
	if n.deliver(ctx, id) != nil {
		_ = n.deliver(ctx, id) // the effects tell
	}
	c.handler.failures.Store(0)
	return c.database.effects(ctx, id)
}

// restarted delivers a message, ends the consumer, and delivers it again to a new one.
func (c *contender) restarted(ctx context.Context) (int, error) {
	id := uuid.NewString()
	for range 2 {
		n, err := c.consumer(ctx, 1, true)
		if err != nil {
			return 0, err
		}
		err = n.deliver(ctx, id)
		c.rest()
		if err != nil {
			return 0, err
		}
	}
	return c.database.effects(ctx, id)
}
