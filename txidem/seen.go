package txidem

import (
	"context"
	"errors"
	"time"

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

// Store is the seen-set contract: three methods that remember which messages have been finished. [Guard] keeps the set in
// PostgreSQL, in the same records that Process makes; [MemoryStore] keeps it in memory. Implementations are safe for
// concurrent use.
//
// A Store knows nothing of consumers: each consumer has one of its own, or a prefix of its own for the keys in it, as a
// Guard has its Consumer. It gets ids verbatim, of 1 to 1024 bytes, in valid UTF-8 and without NUL: [WrapSeen] runs a
// message without an id without asking, and refuses the others. For those who call a Store themselves: an empty id is that
// of no message, so that Seen says false, and Remember and Forget do nothing; a Guard with RequireID refuses it instead.
//
// An id that has expired, or was dropped to make room, is as one that was never remembered: its message runs again.
type Store interface {
	// Seen reports whether the id was remembered. It has the delivery's context, and is called once for each delivery,
	// before the handler. With an error the handler is not called and the message is redelivered.
	Seen(ctx context.Context, id string) (bool, error)

	// Remember adds the id; remembering it again is no error. It is called once after a handler that succeeded, and not
	// tried again: its error is told to the observer, and the message is acked. Its context has the values of the
	// delivery's, but does not end with it: it ends after five seconds.
	Remember(ctx context.Context, id string) error

	// Forget removes the id, so that the next delivery of the message runs. Forgetting an unknown id is no error. WrapSeen
	// does not call it: it is for an operator who replays a message.
	Forget(ctx context.Context, id string) error
}

var (
	_ Store = (*Guard)(nil)
	_ Store = (*MemoryStore)(nil)
)

// rememberLimit bounds Remember after a handler that succeeded, since it does not end with the delivery's context.
const rememberLimit = 5 * time.Second

// WrapSeen makes a broker handler from an h that uses no transaction: it skips and acks what s has seen, and remembers
// the id once h has succeeded. The promise is narrower than that of Wrap. When the process ends between the two, or two
// copies of a message are in flight at once, h runs again; give the id to whatever h calls, as its idempotency key.
//
// An error of Seen is returned, and h is not called: running blind could double the effect. An error of Remember is not
// returned, since the work is done and a redelivery would do it again: an observer is told. Remember is tried
// even when ctx ended while h was running. A message without an id runs. When h panics nothing is remembered.
//
// WrapSeen panics when s, id or h is nil. The observer of a Guard is used when s is one.
func WrapSeen[M any](
	s Store, id func(M) string, h func(context.Context, M) error, opts ...Option,
) func(context.Context, M) error {
	if isNil(s) || id == nil || h == nil {
		panic("txidem: WrapSeen needs a store, an id function and a handler")
	}
	set := seenSet{store: s, opts: collect(nil, opts)}
	if g, ok := s.(*Guard); ok {
		set.consumer = g.cfg.Consumer
		set.requireID = g.cfg.RequireID
		set.opts = collect(g.cfg.Observer, opts)
	}
	return func(ctx context.Context, msg M) error {
		return set.deliver(ctx, id(msg), func(ctx context.Context) error { return h(ctx, msg) })
	}
}

// seenSet is what WrapSeen has of its store.
type seenSet struct {
	store     Store
	consumer  string
	requireID bool
	opts      options
}

func (s seenSet) deliver(ctx context.Context, id string, h func(context.Context) error) error {
	e := DeliveryEvent{Consumer: s.consumer, ID: id}
	_, err := s.opts.observer.observe(ctx, &e, func() (Outcome, error) { return s.run(ctx, id, h, &e) })
	return err
}

func (s seenSet) run(ctx context.Context, id string, h func(context.Context) error, e *DeliveryEvent) (Outcome, error) {
	guarded, err := checkID(id, s.requireID)
	if err != nil {
		return 0, err
	}
	if !guarded {
		return outcomeOf(Unguarded, e.callPlain(func() error { return h(ctx) }))
	}
	start := time.Now()
	seen, err := s.store.Seen(ctx, id)
	e.Claim = time.Since(start)
	if err != nil {
		return 0, err
	}
	if seen {
		return Duplicate, nil
	}
	if err := e.callPlain(func() error { return h(ctx) }); err != nil {
		return 0, err
	}
	e.RememberErr = s.remember(ctx, id)
	return Processed, nil
}

func (s seenSet) remember(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rememberLimit)
	defer cancel()
	return s.store.Remember(ctx, id)
}
