package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

const plainName = "plain transaction, no dedupe"

func plain() peer { return peer{name: plainName, open: openPlain} }

func openPlain(ctx context.Context, config *pgxpool.Config, h *handler) (consumer, error) {
	pool, err := connect(ctx, config)
	if err != nil {
		return nil, err
	}
	return &pooled{pool, func(ctx context.Context, id string) error { return transact(ctx, pool, h, id) }}, nil
}
