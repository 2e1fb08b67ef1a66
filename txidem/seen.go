package txidem

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Seen reports whether this consumer has processed the message, in whichever mode. A transaction that has claimed the
// message and not committed is invisible here: this is the narrower promise of the seen-set. When the record says that
// somebody holds the message and has not processed it, Seen is ErrInFlight.
func (g *Guard) Seen(ctx context.Context, id string) (bool, error) {
	if err := g.ready(); err != nil {
		return false, err
	}
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

// Remember records the message as processed, also when it is recorded already. It waits for a transaction that has claimed
// it, as Process does, and is ErrInFlight past [Config.InFlightWait].
func (g *Guard) Remember(ctx context.Context, id string) error {
	if err := g.ready(); err != nil {
		return err
	}
	guarded, err := g.admit(ctx, id)
	if err != nil || !guarded {
		return err
	}
	var claimed bool
	err = g.withRetry(ctx, func(s session) error {
		claimed, err = g.claimBy(ctx, id, s.query)
		return err
	})
	if err != nil || claimed {
		return err
	}
	found, err := g.find(ctx, id)
	if err != nil {
		return err
	}
	_, err = g.verdict(found, id, historyNone)
	return err
}

// find reads the record of a message.
func (g *Guard) find(ctx context.Context, id string) (found record, err error) {
	err = g.withRetry(ctx, func(s session) error {
		found, err = g.lookBy(ctx, id, s.query)
		return err
	})
	return found, err
}

// Forget removes the record of a processed message, so that the next delivery of it runs: an operator replays it. It first
// waits for a transaction that has claimed the message, since that record would appear after a plain DELETE had found
// nothing, and the replay would be a duplicate. Past [Config.InFlightWait], and when the record says that somebody holds the
// message, it is ErrInFlight and nothing is removed. Of a message's own handler it is ErrAlreadyClaimed.
func (g *Guard) Forget(ctx context.Context, id string) error {
	if err := g.ready(); err != nil {
		return err
	}
	guarded, err := g.admit(ctx, id)
	if err != nil || !guarded {
		return err
	}
	return g.withRetry(ctx, func(s session) error {
		if s.sql != nil {
			return g.forgetSQL(ctx, s.sql, id)
		}
		return g.forgetPgx(ctx, s.pgx, id)
	})
}

// forgetting is READ COMMITTED whatever the session has: the claim waits for a copy in flight, and under a stricter level
// it would fail when that copy commits.
var forgetting = beginningWith(readCommitted)

func (g *Guard) forgetPgx(ctx context.Context, conn *pgxpool.Conn, id string) error {
	t := &transaction{conn: conn}
	claimed, err := g.begin(ctx, t, &forgetting, id)
	if err != nil {
		return err
	}
	defer t.rollback(ctx)
	if err := g.forget(ctx, id, claimed, pgxRow(t.tx)); err != nil {
		return err
	}
	return t.commit(ctx)
}

// forget deletes what is there now that nobody can be inserting it: our own claim when there was nothing, the record of
// a processed message when there was one. lock_timeout bounds the wait for the row.
func (g *Guard) forget(ctx context.Context, id string, claimed bool, query queryRow) error {
	found := recordNone
	err := query(ctx, g.sql.Delete, []any{id, g.consumer}, func(row scanner) error {
		err := row.Scan(new(int))
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		found = recordProcessed
		return err
	})
	switch {
	case waitedInVain(err) && ctx.Err() == nil:
		return g.inFlight(id, "its record is being removed")
	case err != nil:
		return g.explain(ctx, "delete the record", err)
	case claimed || found == recordProcessed:
		return nil
	}
	if found, err = g.lookBy(ctx, id, query); err != nil || found == recordNone {
		return err
	}
	_, err = g.verdict(found, id, historyNone)
	return err
}
