// Package txidem gives message handlers that write to PostgreSQL an exactly-once effect.
//
// Brokers deliver at least once. A [Guard] opens a transaction, claims the message's id in it, hands the transaction to
// the handler and commits: the handler's writes and the record of the message become visible together or not at all. A
// copy that is delivered later finds the record, and its handler is not called; one that is delivered at the same time
// waits. Others call this an idempotent consumer, or the inbox pattern.
//
//	guard, err := txidem.New(pool, &txidem.Config{Consumer: "ledger"})
//	…
//	handler := txidem.Wrap(guard, Charge.ID, func(ctx context.Context, tx pgx.Tx, c Charge) error {
//		_, err := tx.Exec(ctx, `INSERT INTO charges …`)
//		return err
//	})
//	switch s := txidem.Settle(handler(ctx, msg), msg.Deliveries); s.Action {
//	case txidem.Ack: …
//	case txidem.Redeliver: … // after s.After
//	case txidem.Park: …      // no redelivery helps
//	}
//
// # The promise
//
// In these words and no stronger ones: an effect made through the transaction happens exactly once per (consumer, message
// id); everything else that a handler does is at-least-once, and should carry the message id as its own idempotency key.
// Delivery itself stays at-least-once. It needs a server that keeps what it acknowledges: fsync on, synchronous_commit not
// off, a logged table; [Guard.Check] looks.
//
// # Which way in
//
//   - [Guard.Process], [Wrap]: one message, any handler that works through a pgx.Tx. Three round trips with one statement,
//     as many as the same transaction takes without a claim.
//   - [Guard.Pipeline], [WrapPipeline]: one message whose statements are known in advance. One round trip.
//   - [Guard.ProcessBatch], [WrapBatch]: many messages in one transaction.
//   - [Guard.ClaimTx], [Guard.ClaimSQL]: a transaction that the caller owns, of pgx or of database/sql. [NewSQL] is for
//     programs that have no pgx pool.
//   - [WrapSeen]: handlers without a transaction. It remembers a message after its handler succeeded, in the same table or
//     in any other [Store], and has a narrower promise: a handler runs again when its process ended before the message was
//     remembered, and two copies in flight at once both run.
//
// # The handler's transaction
//
// The transaction that a handler gets is a pgx.Tx in every respect but one: its end is not the handler's. Commit, Rollback
// and statements that begin with transaction control other than savepoints are refused, and the delivery then fails with
// [ErrTxControl] whatever the handler returns. What ends the transaction unseen, in a string of several statements or
// through tx.Conn(), is found before COMMIT and is ErrTxControl too; what such a statement committed stays, and the
// redelivery is a [Duplicate]. Begin makes savepoints, whose Commit and Rollback work as usual.
//
// One statement may be in progress at a time: a second one, begun by another goroutine or while rows or a batch are open,
// is [ErrTxBusy], and so is the delivery. A statement that failed on the server and was not rolled back to a savepoint is
// [ErrTxAborted] when the handler returns nil; an error that never reached the server, such as an argument that cannot be
// encoded, is the handler's to return. The transaction must not be used after the handler has returned.
//
// A Guard that is used inside a handler, with the handler's ctx, for the same message, is [ErrAlreadyClaimed] at once. A
// handler should not use the pool that the Guard was made with: with every connection held by a handler that waits for
// another connection, all of them wait until their contexts end.
//
// # Attempts, and COMMITs of unknown outcome
//
// A handler may be called several times in one delivery, each time with a new transaction: after a serialization failure or
// deadlock that its error shows, after a connection that was lost before COMMIT was sent, and after a statement of it that
// was prepared before its table was altered. [RetryPolicy] bounds that. Not repeated is what the handler's own slowness has
// ended, by [Config.IdleLimit] or a timeout of the session's.
//
// When ctx ends, before or after the handler has returned, nothing is stored, unless COMMIT was on its way by then. When
// the connection breaks while COMMIT is on its way, the delivery finds out what became of it by claiming the id again on
// another connection: the old transaction either has committed, or can not commit any more once the new claim is ours. That
// takes [Config.InFlightWait] and five seconds at most, also beyond the end of ctx; then it is [ErrCommitUnknown]. Found to
// be recorded, the message is [Processed], be it by this delivery or by a copy that came in between. For a handler that may
// have committed by itself, having used tx.Conn or a string of several statements, a record proves too little: it gets an
// error, and the redelivery is a Duplicate.
//
// # Pipelines
//
// A pipeline's handler queues its statements and sends nothing; claim, statements and COMMIT travel together. It runs before
// it is known whether the message is new. Statements that pgx has to prepare, on a new connection and after one of them
// failed, take more than the one round trip, and so do statements with callbacks (Query, QueryRow or Exec of the
// *pgx.QueuedQuery), whose callbacks run before COMMIT is sent: an error of one rolls back.
//
// The statements are one transaction: PostgreSQL's implicit one for a batch of INSERT, UPDATE, DELETE, MERGE, SELECT and the
// like, BEGIN and COMMIT around it for others and with [Config.TxOptions]. Transaction control is refused with ErrTxControl,
// and COPY FROM STDIN with [ErrMisuse], before anything is sent. CopyFrom, savepoints by Begin and large objects need
// Process.
//
// A duplicate costs a second round trip and writes nothing, but the server logs an ERROR for it, whose text begins with
// "invalid input syntax" and has "txidem: not claimed" in it: the claim fails so that the server passes over the statements
// behind it. Where most deliveries are duplicates Process is the better choice.
//
// Two bounds are weaker than in Process, since the answer to the claim comes with all the others. A wait for copies
// that take over from each other, each within InFlightWait, and for a lock on the record table itself, ends with ctx only:
// give it a deadline. And no IdleLimit frees the message of a worker that is cut off from the network half-way through
// sending a pipeline; the server's TCP keepalive does. A connection that breaks with the statements on their way costs an
// attempt, since they may have run; so does one that was dead in the pool, unless the server had said so.
//
// # Batches
//
// A batch takes one round trip for its claims and one for COMMIT, however many messages it has, and one more where some are
// duplicates. Claims are made in the order of the ids, so that batches with common messages do not deadlock each other.
//
// When the handler fails, COMMIT is refused, or the retries are spent, nothing of the attempt is stored, and the messages
// are tried again in halves, each in a transaction of its own, until those that fail are alone; see [WithSavepoints] for the
// other way. They get their errors, all others are processed. RetryPolicy bounds each part by itself, so that the handler
// may be called more often, and for longer, than it says: give ctx the deadline of the batch. A copy in flight makes the
// batch wait once, for InFlightWait, or twice that when copies take over from each other or the table is locked; then the
// messages are divided without waiting, and those in flight get ErrInFlight.
//
// A hidden COMMIT of the handler records all messages that were claimed with the one at work. They get ErrTxControl, and are
// Duplicates when they are delivered again, also those whose work was not done: look which they are, and have them replayed
// after [Guard.Forget].
//
// With a broker that acks messages one by one, ack those without an error. With one that acks up to an offset (Kafka),
// commit the offset up to the first message that is to be redelivered, and no further: those behind it that were processed
// are Duplicates then. Park a message that no redelivery helps, or that you give up on, and count it as done, or the offset
// never passes it.
//
// # Time
//
// A delivery that meets everything at once takes, from its start: [RetryPolicy.MaxTime] (10 s) until its last attempt
// begins, in that InFlightWait and a second (6 s) for the claim, the handler and COMMIT, and InFlightWait and five seconds
// (10 s) to find out what became of a COMMIT: 26 s, the handler and COMMIT, with the defaults. Keep that below the broker's
// ack deadline, or have the broker's client extend it while the handler runs. Give ctx a deadline as well: the wait for a
// connection of the pool, and for an answer from a server that has fallen silent, ends with nothing else. All but the last
// ten seconds end with ctx.
//
// # Pools, poolers and sessions
//
// Each delivery has one connection from its claim to its COMMIT, and a copy that waits has one too: a pool has as many as
// there are deliveries at once. All exec modes of pgx work. Behind PgBouncer in transaction mode, versions before 1.21 and
// those with max_prepared_statements = 0 need another mode than pgx's default, cache_statement.
//
// The table is always named with its schema: search_path is not used. [Config.Schema] and [Config.Table] are those that
// package migrations was given. At run time the role needs USAGE on the schema and SELECT and INSERT on the table, and
// DELETE for Forget and WithSavepoints.
//
// Package migrations creates the table, package envelope reads the canonical wire envelope.
package txidem
