package txidem

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/internal/pgerr"
)

// Store is the seen-set contract: three methods that remember which messages a consumer has finished. [Guard] keeps the
// set in PostgreSQL, in the same records that Process makes; [MemoryStore] keeps it in memory. Implementations are safe
// for concurrent use.
//
// An empty id is nobody's: Seen says false, Remember and Forget do nothing.
type Store interface {
	// Seen reports whether the id was remembered.
	Seen(ctx context.Context, id string) (bool, error)

	// Remember adds the id. It is called after the handler has succeeded. Remembering an id twice is no error.
	Remember(ctx context.Context, id string) error

	// Forget removes the id, so that the next delivery of the message runs. Forgetting an unknown id is no error.
	Forget(ctx context.Context, id string) error
}

var (
	_ Store = (*Guard)(nil)
	_ Store = (*MemoryStore)(nil)
)

// Seen reports whether this consumer has processed the message, in whichever mode. A message that somebody holds under a
// lease is ErrInFlight: neither seen nor free. A transaction that has claimed the message and not committed is invisible
// here: this is the narrower promise of the seen-set.
func (g *Guard) Seen(ctx context.Context, id string) (bool, error) {
	guarded, err := checkID(id, g.cfg.RequireID)
	if err != nil || !guarded {
		return false, err
	}
	found, err := g.find(ctx, id)
	if err != nil || found == recordNone {
		return false, err
	}
	outcome, err := g.verdict(found, id, historyNone)
	return outcome == Duplicate, err
}

// Remember records the message as processed. It waits for a transaction that has claimed it, as Process does, and is
// ErrInFlight past [Config.InFlightWait].
func (g *Guard) Remember(ctx context.Context, id string) error {
	guarded, err := checkID(id, g.cfg.RequireID)
	if err != nil || !guarded {
		return err
	}
	made, err := g.insert(ctx, id)
	if err != nil || made {
		return err
	}
	found, err := g.find(ctx, id)
	if err != nil {
		return err
	}
	_, err = g.verdict(found, id, historyNone)
	return err
}

// Forget removes the record of a processed message, so that the next delivery of it runs: an operator replays it. It first
// waits for a transaction that has claimed the message, since that record would appear after a plain DELETE had found
// nothing, and the replay would be a duplicate. Past [Config.InFlightWait], and for a message under a lease, it is ErrInFlight
// and nothing is removed. A handler that forgets its own message waits for itself until then.
func (g *Guard) Forget(ctx context.Context, id string) error {
	guarded, err := checkID(id, g.cfg.RequireID)
	if err != nil || !guarded {
		return err
	}
	return g.withRetry(ctx, func(conn *pgxpool.Conn) error {
		t := &transaction{conn: conn}
		claimed, err := g.begin(ctx, t, &forgetting, id)
		if err != nil {
			return err
		}
		defer t.rollback(ctx)
		return g.forget(ctx, t, claimed, id)
	})
}

// forgetting is READ COMMITTED whatever the session has: the claim waits for a copy in flight, and under a stricter level
// it would fail when that copy commits.
var forgetting = beginningWith(pgx.TxOptions{BeginQuery: beginQuery(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})})

// forget deletes what is there now that nobody can be inserting it: our own claim when there was nothing, the record of
// a processed message when there was one.
func (g *Guard) forget(ctx context.Context, t *transaction, claimed bool, id string) error {
	tag, err := t.tx.Exec(ctx, g.sql.Delete, id, g.consumer)
	if pgerr.State(err) == pgerr.LockNotAvailable { // of the claim, which found the key taken: it bounds the wait for the row too
		return g.inFlight(id, "its record is being removed")
	}
	if err != nil {
		return g.explain(ctx, "delete the record", err)
	}
	if !claimed && tag.RowsAffected() == 0 {
		found, err := scanRecord(t.tx.QueryRow(ctx, g.sql.Look, id, g.consumer))
		if err != nil {
			return g.explain(ctx, lookingAtRecord, err)
		}
		if found != recordNone {
			_, err = g.verdict(found, id, historyNone)
			return err
		}
	}
	return t.commit(ctx)
}

// find reads the record of a message.
func (g *Guard) find(ctx context.Context, id string) (found record, err error) {
	err = g.withRetry(ctx, func(conn *pgxpool.Conn) error {
		found, err = scanRecord(conn.QueryRow(ctx, g.sql.Look, id, g.consumer))
		if err != nil {
			return g.explain(ctx, lookingAtRecord, err)
		}
		return nil
	})
	return found, err
}

// insert makes the record in a transaction of one statement. It is the same statement as the claim of Process.
func (g *Guard) insert(ctx context.Context, id string) (made bool, err error) {
	err = g.withRetry(ctx, func(conn *pgxpool.Conn) error {
		bounded, cancel := context.WithTimeout(ctx, g.claimTime())
		defer cancel()
		tag, err := conn.Exec(bounded, g.sql.Claim, id, g.consumer, g.wait, g.idle)
		if err != nil {
			return g.claimError(ctx, bounded.Err() != nil, id, err)
		}
		made = tag.RowsAffected() == 1
		return nil
	})
	return made, err
}

// withRetry lends a connection of the pool to fn, and again after a failure that a new connection or transaction can mend,
// within the time of [Config.Retry]. fn can be repeated without harm, or its error is ErrCommitUnknown.
func (g *Guard) withRetry(ctx context.Context, fn func(conn *pgxpool.Conn) error) error {
	b := g.newBudget()
	for {
		lost := false
		err := g.withConn(ctx, func(conn *pgxpool.Conn) error {
			err := fn(conn)
			lost = conn.Conn().IsClosed()
			return err
		})
		if err == nil {
			return nil
		}
		d, err := decide(failure{phase: phaseOpen, err: err, ctxErr: ctx.Err(), closed: lost})
		if !b.allows(ctx, d, 0) {
			return err
		}
	}
}

// withConn lends a connection of the pool to fn.
func (g *Guard) withConn(ctx context.Context, fn func(conn *pgxpool.Conn) error) error {
	conn, err := g.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return fn(conn)
}
