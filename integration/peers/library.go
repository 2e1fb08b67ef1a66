package main

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/migrations"
	"github.com/txidem/txidem-go/txidem"
)

const libraryName = "txidem, Process"

// library is txidem.
func library() peer {
	return peer{name: libraryName, module: "github.com/txidem/txidem-go", open: openLibrary}
}

func openLibrary(ctx context.Context, config *pgxpool.Config, h *handler) (consumer, error) {
	pool, err := connect(ctx, config)
	if err != nil {
		return nil, err
	}
	guard, err := guarded(ctx, pool)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &pooled{pool, func(ctx context.Context, id string) error {
		_, err := guard.Process(ctx, id, func(ctx context.Context, tx pgx.Tx) error {
			return h.handle(ctx, id, through(tx))
		})
		return err
	}}, nil
}

func guarded(ctx context.Context, pool *pgxpool.Pool) (*txidem.Guard, error) {
	if _, err := migrations.Apply(ctx, pool, nil); err != nil {
		return nil, err
	}
	return txidem.New(pool, &txidem.Config{Consumer: "peers"})
}
