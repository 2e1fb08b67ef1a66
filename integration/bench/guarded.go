package main

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/txidem"
)

// guarded are the library's ways.
func (c *client) guarded() []contender {
	return []contender{
		single(processName, true, c.process),
		single("ClaimTx", true, c.claimTx),
		c.wrapSeen(),
	}
}

func (c *client) process(ctx context.Context, id string) (txidem.Outcome, error) {
	return c.guard.Process(ctx, id, func(ctx context.Context, tx pgx.Tx) error { return effect(ctx, tx, id) })
}

// claimTx joins a transaction that is begun by the caller.
func (c *client) claimTx(ctx context.Context, id string) (outcome txidem.Outcome, err error) {
	err = pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		outcome, err = c.guard.ClaimTx(ctx, tx, id)
		if err != nil || outcome == txidem.Duplicate {
			return err
		}
		outcome = txidem.Processed
		return effect(ctx, tx, id)
	})
	return outcome, err
}

// wrapSeen has a handler with a transaction of its own. The handler tells that it ran, since WrapSeen returns no outcome.
func (c *client) wrapSeen() contender {
	type message struct {
		id  string
		ran *bool
	}
	handle := txidem.WrapSeen(c.guard, func(m message) string { return m.id }, func(ctx context.Context, m message) error {
		*m.ran = true
		_, err := c.plain(ctx, m.id)
		return err
	})
	return single("WrapSeen", true, func(ctx context.Context, id string) (txidem.Outcome, error) {
		ran := false
		err := handle(ctx, message{id, &ran})
		if ran {
			return txidem.Processed, err
		}
		return txidem.Duplicate, err
	})
}
