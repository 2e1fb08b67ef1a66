// This file is compiled in by ../run, in the place of ../babelqueue_open.go.

package main

import (
	"context"

	babelqueue "github.com/babelqueue/babelqueue-go"
	"github.com/babelqueue/babelqueue-go/idempotency"
	postgres "github.com/babelqueue/babelqueue-go/idempotency-postgres"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

func init() { openBabelQueue = babelQueueOverPostgres }

// babelQueueOverPostgres has the store work in the same pool as the handler.
func babelQueueOverPostgres(ctx context.Context, config *pgxpool.Config, h *handler) (consumer, error) {
	pool, err := connect(ctx, config)
	if err != nil {
		return nil, err
	}
	store := postgres.NewWithDB(stdlib.OpenDBFromPool(pool))
	if err := store.Migrate(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	handle := idempotency.Wrap(store, func(ctx context.Context, m babelqueue.Envelope) error {
		return transact(ctx, pool, h, m.Meta.ID)
	})
	return &pooled{pool, func(ctx context.Context, id string) error {
		m := babelqueue.Envelope{}
		m.Meta.ID = id
		return handle(ctx, m)
	}}, nil
}
