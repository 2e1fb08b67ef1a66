package main

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/jackc/pgx/v5/pgxpool"
)

// watermillDeduplicator is Watermill's middleware with the one store that comes with it, a map in memory, keyed by the
// message's id. Its window is the default, one minute.
func watermillDeduplicator() peer {
	return peer{name: "Watermill, Deduplicator", module: "github.com/ThreeDotsLabs/watermill", open: openWatermill}
}

func openWatermill(ctx context.Context, config *pgxpool.Config, h *handler) (consumer, error) {
	pool, err := connect(ctx, config)
	if err != nil {
		return nil, err
	}
	dedupe := &middleware.Deduplicator{KeyFactory: func(m *message.Message) (string, error) { return m.UUID, nil }}
	handle := dedupe.Middleware(func(m *message.Message) ([]*message.Message, error) {
		return nil, transact(m.Context(), pool, h, m.UUID)
	})
	return &pooled{pool, func(ctx context.Context, id string) error {
		_, err := handle(message.NewMessageWithContext(ctx, id, nil))
		return err
	}}, nil
}
