package txidem_test

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/txidem"
)

type charge struct {
	ID      string
	Account string
	Cents   int
	Offset  int64
}

func (c charge) MessageID() string { return c.ID }

// A handler that knows its statements in advance queues them.
func ExampleWrapPipeline() {
	var guard *txidem.Guard // made at the start of the program
	subscribe := func(func(context.Context, charge) error) {}

	subscribe(txidem.WrapPipeline(guard, charge.MessageID, func(_ context.Context, b *pgx.Batch, c charge) error {
		b.Queue(`INSERT INTO charges (account, cents) VALUES ($1, $2)`, c.Account, c.Cents)
		b.Queue(`UPDATE accounts SET owed = owed + $2 WHERE account = $1`, c.Account, c.Cents)
		return nil
	}))
}

// A broker that acks up to an offset gets the offset of the last message before the first one that is to come again.
func ExampleWrapBatch() {
	var guard *txidem.Guard // made at the start of the program
	poll := func() []charge { return nil }
	commitOffset := func(int64) {}
	park := func(charge, error) {}

	handle := txidem.WrapBatch(guard, charge.MessageID, func(ctx context.Context, tx pgx.Tx, fresh []charge) error {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"charges"}, []string{"account", "cents"},
			pgx.CopyFromSlice(len(fresh), func(i int) ([]any, error) { return []any{fresh[i].Account, fresh[i].Cents}, nil }))
		return err
	})
	msgs := poll()
	for i, r := range handle(context.Background(), msgs) {
		if r.Err != nil && txidem.Retryable(r.Err) {
			break
		}
		if r.Err != nil {
			park(msgs[i], r.Err)
		}
		commitOffset(msgs[i].Offset)
	}
}
