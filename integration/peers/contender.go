package main

import (
	"context"
	"errors"
	"fmt"
)

// contender is a peer at work in its database.
type contender struct {
	peer
	database *database
	handler  *handler
	open     []consumer
}

// newContender makes the database of a peer.
func newContender(ctx context.Context, server string, p peer) (*contender, error) {
	d, err := newDatabase(ctx, server)
	return &contender{peer: p, database: d, handler: &handler{}}, err
}

// consumer begins one more of the contender's consumers.
func (c *contender) consumer(ctx context.Context, deliveries int, sync bool) (consumer, error) {
	config, err := c.database.config(deliveries, sync)
	if err != nil {
		return nil, err
	}
	n, err := c.peer.open(ctx, config, c.handler)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	c.open = append(c.open, n)
	return n, nil
}

// rest ends all consumers.
func (c *contender) rest() {
	for _, n := range c.open {
		n.close()
	}
	c.open = nil
}

// end drops the database.
func (c *contender) end(ctx context.Context) error {
	c.rest()
	return c.database.drop(ctx)
}

// endAll ends every contender.
func endAll(ctx context.Context, all []*contender) error {
	var err error
	for _, c := range all {
		err = errors.Join(err, c.end(ctx))
	}
	return err
}
