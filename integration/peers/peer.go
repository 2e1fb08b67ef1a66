package main

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// peer is one way to process messages.
type peer struct {
	name    string
	module  string // of its library, or empty
	missing string // why it cannot be measured in this build, or empty
	open    openFunc
}

// openFunc begins a consumer, and makes the tables that the library needs.
type openFunc func(ctx context.Context, config *pgxpool.Config, h *handler) (consumer, error)

// consumer is one process of a fleet: it has its own pool, and whatever its library keeps in memory.
type consumer interface {
	// deliver processes a message. Without an error the message is acked, otherwise it would be delivered again.
	deliver(ctx context.Context, id string) error
	close()
}

// peers lists all of them. The first one is the limit, which does not dedupe.
func peers() []peer {
	return []peer{plain(), library(), babelQueue(), dbosTransaction(), watermillDeduplicator()}
}

// pooled is a consumer that needs nothing but its pool.
type pooled struct {
	pool   *pgxpool.Pool
	handle func(ctx context.Context, id string) error
}

func (p *pooled) deliver(ctx context.Context, id string) error { return p.handle(ctx, id) }
func (p *pooled) close()                                       { p.pool.Close() }

// transact is the handler in a transaction of its own, which is how those libraries are used that do not hand one to it.
func transact(ctx context.Context, pool *pgxpool.Pool, h *handler, id string) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return h.handle(ctx, id, through(tx)) })
}

func through(tx pgx.Tx) exec {
	return func(ctx context.Context, sql string, args ...any) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	}
}
