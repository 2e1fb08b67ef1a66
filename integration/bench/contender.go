package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/txidem"
)

// The names by which the targets and the chart know contenders.
const (
	plainName      = "plain transaction, no dedupe"
	autocommitName = "autocommit statement, no dedupe"
	plainRowsName  = "100 rows in one plain transaction, no dedupe"
	processName    = "Process"
	pipelineName   = "Pipeline"

	handClaimedName = "claim as a statement of its own"
	handSeenName    = "seen → transaction → remember"
	handRowsName    = "100 claims as a statement of their own"
)

// batchName names WrapBatch with deliveries of n messages.
func batchName(n int) string { return fmt.Sprintf("WrapBatch of %d", n) }

// contender is one way of processing messages.
type contender struct {
	name    string
	batch   int  // messages in one delivery
	records bool // makes a record for each message, and skips what has one
	deliver func(ctx context.Context, ids []string) (tally, error)
}

// tally is what became of some messages.
type tally struct{ processed, duplicates int }

func (t *tally) add(other tally) {
	t.processed += other.processed
	t.duplicates += other.duplicates
}

// one is the tally of a single message.
func one(o txidem.Outcome, err error) (tally, error) {
	switch {
	case err != nil:
		return tally{}, err
	case o == txidem.Processed:
		return tally{processed: 1}, nil
	case o == txidem.Duplicate:
		return tally{duplicates: 1}, nil
	default:
		return tally{}, fmt.Errorf("outcome %v of a message with an id", o)
	}
}

// client is what the contenders work with: one pool for all of them.
type client struct {
	pool  *pgxpool.Pool
	guard *txidem.Guard
}

func newClient(pool *pgxpool.Pool) (*client, error) {
	guard, err := txidem.New(pool, &txidem.Config{Consumer: consumer})
	return &client{pool: pool, guard: guard}, err
}

// contenders lists all of them. The first two are the limits: the plain transaction and the autocommit statement.
func (c *client) contenders() []contender {
	return slices.Concat(c.baselines(), c.guarded(), c.batched())
}

// single makes a contender whose deliveries are of one message.
func single(name string, records bool, deliver func(ctx context.Context, id string) (txidem.Outcome, error)) contender {
	return contender{name: name, batch: 1, records: records, deliver: func(ctx context.Context, ids []string) (tally, error) {
		return one(deliver(ctx, ids[0]))
	}}
}

// insertEffect is the handler's work. All handlers send this text, but those of many messages at once.
const insertEffect = `INSERT INTO bench_effects (message_id, cents) VALUES ($1::text, $2::bigint)`

// cents is what each effect carries.
const cents = 500

// effect is the handler's work in a transaction.
func effect(ctx context.Context, tx pgx.Tx, id string) error {
	_, err := tx.Exec(ctx, insertEffect, id, cents)
	return err
}

// insertEffects is insertEffect for many messages.
const insertEffects = `INSERT INTO bench_effects (message_id, cents) SELECT id, $2::bigint FROM unnest($1::text[]) AS id`

// effects is the handler's work for many messages.
func effects(ctx context.Context, tx pgx.Tx, ids []string) error {
	_, err := tx.Exec(ctx, insertEffects, ids, cents)
	return err
}
