// Package txidem gives message handlers that write to PostgreSQL an exactly-once effect.
//
// Brokers deliver at least once. A [Guard] opens a transaction, claims the message's id in it, hands the transaction to
// the handler and commits: the handler's writes and the record of the message become visible together or not at all. A
// copy that is delivered again, or at the same time, finds the record, or waits for it, and its handler has no effect.
//
//	guard, err := txidem.New(pool, &txidem.Config{Consumer: "ledger"})
//	…
//	handler := txidem.Wrap(guard, Charge.ID, func(ctx context.Context, tx pgx.Tx, c Charge) error {
//		_, err := tx.Exec(ctx, `INSERT INTO charges …`)
//		return err
//	})
//	// handler(ctx, msg) == nil: ack. An error: have it delivered again.
//
// The promise, in these words and no stronger ones: an effect made through the transaction happens exactly once per
// (consumer, message id); everything else that a handler does is at-least-once, and should carry the message id as its own
// idempotency key. Delivery itself stays at-least-once. It needs a server that keeps what it acknowledges: fsync on,
// synchronous_commit not off, a logged table; [Guard.Check] looks.
//
// [Guard.Process] is the core, and [Wrap] makes a broker's handler of it. [Guard.Pipeline] and [WrapPipeline] do the same in
// one round trip for handlers that know their statements in advance, and [WrapBatch] in one transaction for many messages.
// [Guard.ClaimTx] and [Guard.ClaimSQL] claim in a transaction that the caller owns. [WrapSeen] serves handlers that use no
// transaction, with a narrower promise: it remembers a message after its handler succeeded, in the same table or in any
// other [Store].
//
// Package migrations creates the table, package envelope reads the canonical wire envelope.
package txidem
