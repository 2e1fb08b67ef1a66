package main

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/txidem"
)

// The statements of hand-made dedupe, on the same table as the library's.
const (
	handClaim = `INSERT INTO txidem_messages (message_id, consumer, processed_at) VALUES ($1::text, $2::text, now())
ON CONFLICT (message_id, consumer) DO NOTHING`
	handClaims = `INSERT INTO txidem_messages (message_id, consumer, processed_at)
SELECT id, $2::text, now() FROM unnest($1::text[]) AS id
ON CONFLICT (message_id, consumer) DO NOTHING RETURNING message_id`
	handSeen = `SELECT EXISTS (SELECT FROM txidem_messages WHERE message_id = $1::text AND consumer = $2::text)`
)

// baselines are what is written without the library: the limits, which do not dedupe, and the usual ways.
func (c *client) baselines() []contender {
	return []contender{
		single(plainName, false, c.plain),
		single(autocommitName, false, c.autocommit),
		{name: plainRowsName, batch: 100, deliver: c.plainRows},
		single(handClaimedName, true, c.handClaimed),
		single(handSeenName, true, c.handSeen),
		{name: handRowsName, batch: 100, records: true, deliver: c.handRows},
	}
}

func (c *client) plain(ctx context.Context, id string) (txidem.Outcome, error) {
	return txidem.Processed, pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error { return effect(ctx, tx, id) })
}

func (c *client) autocommit(ctx context.Context, id string) (txidem.Outcome, error) {
	_, err := c.pool.Exec(ctx, insertEffect, id, cents)
	return txidem.Processed, err
}

// plainRows is the plain transaction with one row for each of its messages: the limit of WrapBatch.
func (c *client) plainRows(ctx context.Context, ids []string) (tally, error) {
	return tally{processed: len(ids)}, pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error { return effects(ctx, tx, ids) })
}

// handClaimed is BEGIN, claim, handler, COMMIT.
func (c *client) handClaimed(ctx context.Context, id string) (txidem.Outcome, error) {
	outcome := txidem.Processed
	err := pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, handClaim, id, consumer)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			outcome = txidem.Duplicate
			return nil
		}
		return effect(ctx, tx, id)
	})
	return outcome, err
}

// handRows is handClaimed for many messages: BEGIN, claims, handler, COMMIT. A bare INSERT of the claims is about the least
// that they can cost.
func (c *client) handRows(ctx context.Context, ids []string) (all tally, err error) {
	err = pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, handClaims, ids, consumer)
		if err != nil {
			return err
		}
		fresh, err := pgx.CollectRows(rows, pgx.RowTo[string])
		all = tally{len(fresh), len(ids) - len(fresh)}
		if err != nil || len(fresh) == 0 {
			return err
		}
		return effects(ctx, tx, fresh)
	})
	return all, err
}

// handSeen is what most libraries do, and loses or doubles when something dies in between.
func (c *client) handSeen(ctx context.Context, id string) (txidem.Outcome, error) {
	var seen bool
	if err := c.pool.QueryRow(ctx, handSeen, id, consumer).Scan(&seen); err != nil {
		return 0, err
	}
	if seen {
		return txidem.Duplicate, nil
	}
	if _, err := c.plain(ctx, id); err != nil {
		return 0, err
	}
	_, err := c.pool.Exec(ctx, handClaim, id, consumer)
	return txidem.Processed, err
}
