package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
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

// atOnce delivers copies of one message at the same time, by turns to two consumers.
func (c *contender) atOnce(ctx context.Context, p plan) (effects, failed int, err error) {
	defer c.rest()
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	var fleet [2]consumer
	for i := range fleet {
		if fleet[i], err = c.consumer(ctx, true); err != nil {
			return 0, 0, err
		}
		if err = fleet[i].deliver(ctx, uuid.NewString()); err != nil { // it is warm then
			return 0, 0, err
		}
	}
	c.handler.pause.Store(int64(p.pause))
	defer c.handler.pause.Store(0)
	id, start, errs := uuid.NewString(), make(chan struct{}), make([]error, p.copies)
	var group errgroup.Group
	for i := range p.copies {
		group.Go(func() error {
			<-start
			errs[i] = fleet[i%len(fleet)].deliver(ctx, id)
			return nil
		})
	}
	close(start)
	err = group.Wait()
	for _, e := range errs {
		if e != nil {
			failed++
		}
	}
	effects, countErr := c.database.effects(ctx, id)
	return effects, failed, errors.Join(err, countErr)
}

// failed delivers a message whose handler fails after its INSERT, and then delivers it again, as a broker does.
func (c *contender) failed(ctx context.Context) (int, error) {
	defer c.rest()
	n, err := c.consumer(ctx, true)
	if err != nil {
		return 0, err
	}
	id := uuid.NewString()
	c.handler.failures.Store(1)
	if err := n.deliver(ctx, id); err == nil {
		return 0, errors.New("a handler that failed was acked")
	}
	c.handler.failures.Store(0)
	_ = n.deliver(ctx, id) // the effects tell
	return c.database.effects(ctx, id)
}

// restarted delivers a message, ends the consumer, and delivers it again to a new one.
func (c *contender) restarted(ctx context.Context) (int, error) {
	id := uuid.NewString()
	for range 2 {
		n, err := c.consumer(ctx, true)
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
