package txidem

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// ClaimTx claims the message id in a transaction that the caller owns: a unit of work, the transaction of a River worker,
// or one of another library. The record is committed or rolled back with everything else in it.
//
// With Claimed the message is new: do its work in the same transaction and commit. With Duplicate it was processed before:
// skip the work; the transaction is as usable as before. With Unguarded the id is empty: do the work. After an error the
// caller must roll back: the transaction may be aborted. Claim and work belong in the same savepoint, if there is one.
//
// lock_timeout is as before when ClaimTx returns a nil error. A wait for a copy in flight is bounded by
// [Config.InFlightWait]; under REPEATABLE READ and SERIALIZABLE a copy in flight is an error with SQLSTATE 40001 instead:
// begin a new transaction. Claim several messages in one transaction in the order of their ids: two transactions that claim
// two ids in opposite order deadlock, and the server fails one of them.
//
// ClaimTx is safe for concurrent use, with a transaction for each caller.
func (g *Guard) ClaimTx(ctx context.Context, tx pgx.Tx, id string, opts ...Option) (Outcome, error) {
	if isNil(tx) {
		return 0, errors.New("txidem: ClaimTx needs a transaction, got nil")
	}
	return g.join(ctx, id, opts, pgxRow(tx))
}

// SQLTx is what ClaimSQL needs of a transaction. *sql.Tx has it, and so have the transactions of sqlx, of ent's SQL driver
// and of ent's generated client with the feature sql/execquery. With bun it is the *sql.Tx inside (tx.Tx), since bun's own
// methods take ? placeholders; with GORM it is tx.Statement.ConnPool.(txidem.SQLTx). *sql.DB has no Commit and does not
// fit, since a claim outside a transaction would be worthless.
type SQLTx interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	Commit() error
}

// ClaimSQL is [Guard.ClaimTx] for a transaction of database/sql, with any PostgreSQL driver that takes $1 placeholders.
// It does not call Commit.
func (g *Guard) ClaimSQL(ctx context.Context, tx SQLTx, id string, opts ...Option) (Outcome, error) {
	if isNil(tx) {
		return 0, errors.New("txidem: ClaimSQL needs a transaction, got nil")
	}
	return g.join(ctx, id, opts, sqlRow(tx))
}

// join claims in a transaction of somebody else, and tells the observer.
func (g *Guard) join(ctx context.Context, id string, opts []Option, query queryRow) (Outcome, error) {
	if err := g.ready(); err != nil {
		return 0, err
	}
	e := DeliveryEvent{Consumer: g.cfg.Consumer, ID: id}
	return collect(g.cfg.Observer, opts).observer.observe(ctx, &e, func() (Outcome, error) {
		start := time.Now()
		defer func() { e.Claim = time.Since(start) }()
		return outcomeOf(g.joinUnobserved(ctx, id, query))
	})
}

func (g *Guard) joinUnobserved(ctx context.Context, id string, query queryRow) (Outcome, error) {
	guarded, err := g.admit(ctx, id)
	if err != nil {
		return 0, err
	}
	if !guarded {
		return Unguarded, nil
	}
	claimed, err := g.claimBy(ctx, id, query)
	if err != nil {
		return 0, err
	}
	if claimed {
		return Claimed, nil
	}
	found, err := g.lookBy(ctx, id, query)
	if err != nil {
		return 0, err
	}
	return g.verdict(found, id, historyNone)
}

// claimBy claims in a transaction that is open, or in that of a single statement.
func (g *Guard) claimBy(ctx context.Context, id string, query queryRow) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, g.claimTime())
	defer cancel()
	var n int64
	var restored string
	err := query(bounded, g.sql.ClaimJoined, []any{id, g.consumer, g.wait}, func(row scanner) error {
		return row.Scan(&n, &restored)
	})
	if err != nil {
		return false, g.claimError(ctx, bounded.Err() != nil, id, err)
	}
	return n == 1, nil
}

// lookBy looks at the record.
func (g *Guard) lookBy(ctx context.Context, id string, query queryRow) (record, error) {
	found := recordNone
	err := query(ctx, g.sql.Look, []any{id, g.consumer}, func(row scanner) error {
		var err error
		found, err = scanRecord(row)
		return err
	})
	if err != nil {
		return recordNone, g.explain(ctx, lookingAtRecord, err)
	}
	return found, nil
}
