package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/txidem"
)

// mode is a way to use the library. deliver makes one delivery of a message and returns nil to ack it.
type mode struct {
	name        string
	promise     string
	handlers    []script
	cold        []script // those that run on a new connection as well
	misbehaving bool     // also with the handlers that need the guard at the end of the transaction
	deliver     func(ctx context.Context, l *line, s *story) error
}

var modes = []mode{
	{"Process", transactional, scripts, scripts, true, process},
	{"Wrap", transactional, scripts, nil, false, wrap},
	{"Pipeline", transactional, queues, forms, false, pipeline},
	{"WrapBatch", transactional, batches, nil, false, wrapBatch},
	{"ClaimTx", transactional, scripts, nil, false, claimTx},
	{"WrapSeen", seenSet, scripts, nil, false, wrapSeen},
}

func (m mode) String() string { return m.name }

// conns are the connections that the mode is tried on.
func (m mode) conns() []connState {
	if m.cold != nil || full() {
		return []connState{warm, cold}
	}
	return []connState{warm}
}

// full asks for every handler of every mode on a new connection too.
func full() bool { return os.Getenv("TXIDEM_MATRIX") == "full" }

// scripts are the handlers that the mode runs.
func (m mode) scripts(conn connState) []script {
	if m.misbehaving && conn == warm {
		return slices.Concat(m.handlers, misbehaving)
	}
	if conn == cold && !full() {
		return m.cold
	}
	return m.handlers
}

// runIn runs the script of the line in a transaction, and says when the delivery is inside it.
func (l *line) runIn(ctx context.Context, tx pgx.Tx, s *story) error {
	s.reach(atHandler)
	defer s.reach(atCommit)
	return l.script.run(ctx, tx, s)
}

func process(ctx context.Context, l *line, s *story) error {
	outcome, err := l.guard.Process(ctx, s.id, func(ctx context.Context, tx pgx.Tx) error { return l.runIn(ctx, tx, s) })
	return ackable(outcome, err)
}

// ackable refuses an outcome that a message with an id cannot have.
func ackable(outcome txidem.Outcome, err error) error {
	if err == nil && outcome != txidem.Processed && outcome != txidem.Duplicate && outcome != txidem.Claimed {
		return fmt.Errorf("the outcome %v without an error", outcome)
	}
	return err
}

func idOf(s *story) string { return s.id }

func wrap(ctx context.Context, l *line, s *story) error {
	return txidem.Wrap(l.guard, idOf, l.runIn)(ctx, s)
}

// rollbackLimit bounds the rollback of a caller that owns its transaction.
const rollbackLimit = time.Second

// claimTx is the loop of a caller that owns the transaction. A COMMIT whose outcome it does not know is an error like any
// other: the redelivery finds out.
func claimTx(ctx context.Context, l *line, s *story) error {
	tx, err := l.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackLimit)
		defer cancel()
		_ = tx.Rollback(ctx) // does nothing after COMMIT; on failure pgx closes the connection
	}()
	outcome, err := l.guard.ClaimTx(ctx, tx, s.id)
	if err := ackable(outcome, err); err != nil || outcome == txidem.Duplicate {
		return err
	}
	if err := l.runIn(ctx, tx, s); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// wrapSeen gives the script a transaction of its own: whole by itself, and not one with the record.
func wrapSeen(ctx context.Context, l *line, s *story) error {
	handler := func(ctx context.Context, s *story) error {
		s.reach(atHandler)
		defer s.reach(atCommit)
		return pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error { return l.script.run(ctx, tx, s) })
	}
	observe := func(_ context.Context, d txidem.DeliveryEvent) {
		if d.RememberErr != nil {
			s.forgotten.Store(true)
		}
	}
	return txidem.WrapSeen(l.guard, idOf, handler, txidem.WithObserver(observe))(ctx, s)
}

// errNeverAcked ends a message that was redelivered too often.
var errNeverAcked = errors.New("never acked")
