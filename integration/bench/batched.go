package main

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/txidem"
)

// batched are the library's ways that send several statements, or the messages of several deliveries, at once.
func (c *client) batched() []contender {
	return []contender{
		single(pipelineName, true, c.pipeline),
		c.wrapBatch(10), c.wrapBatch(100), c.wrapBatch(1000),
	}
}

func (c *client) pipeline(ctx context.Context, id string) (txidem.Outcome, error) {
	return c.guard.Pipeline(ctx, id, func(_ context.Context, b *pgx.Batch) error {
		b.Queue(insertEffect, id, cents)
		return nil
	})
}

// wrapBatch delivers n messages at once.
func (c *client) wrapBatch(n int) contender {
	handle := txidem.WrapBatch(c.guard, func(id string) string { return id },
		func(ctx context.Context, tx pgx.Tx, fresh []string) error {
			return effects(ctx, tx, fresh)
		})
	return contender{name: batchName(n), batch: n, records: true, deliver: func(ctx context.Context, ids []string) (tally, error) {
		var all tally
		for _, r := range handle(ctx, ids) {
			got, err := one(r.Outcome, r.Err)
			if err != nil {
				return all, err
			}
			all.add(got)
		}
		return all, nil
	}}
}
