// Package payment charges accounts. It is the part of this example to copy from: the business code of a consumer, and
// the three ways to run it.
package payment

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/txidem"
	"github.com/txidem/txidem-go/txidem/envelope"
)

// Handler processes one message. The delivery is acked when it returns nil; its error decides whether the delivery is made
// again or given up.
type Handler = func(ctx context.Context, msg envelope.Envelope) error

// Plain charges without deduplication: every delivery of a message charges again.
func Plain(pool *pgxpool.Pool) Handler {
	return func(ctx context.Context, msg envelope.Envelope) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return Charge(ctx, tx, msg) })
	}
}

// SeenSet charges, and remembers the message afterwards. A worker that dies in between charges again, and so do two
// workers that hold copies of one message at the same time.
func SeenSet(pool *pgxpool.Pool, guard *txidem.Guard) Handler {
	return txidem.WrapSeen(guard, envelope.Envelope.ID, Plain(pool))
}

// Transactional charges exactly once: the charge and the record of the message are committed together.
func Transactional(guard *txidem.Guard) Handler {
	return txidem.Wrap(guard, envelope.Envelope.ID, Charge)
}
