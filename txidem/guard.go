package txidem

import (
	"context"
	"database/sql"
	"errors"
	"reflect"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/internal/sqlgen"
)

// DB is the pool of a Guard. What it returns is pgxpool's own, so that it is a *pgxpool.Pool, or something that lends the
// connections of one. A Guard takes one connection at a time: a pool of one is enough.
type DB interface {
	Acquire(ctx context.Context) (*pgxpool.Conn, error)
}

// Guard gives the messages of one consumer an exactly-once effect. It is made by [New] or [NewSQL], once, and shared: it is
// safe for concurrent use. It holds no connection between calls.
type Guard struct {
	db       DB
	sqlDB    *sql.DB // in place of db, for a Guard of NewSQL
	cfg      Config
	sql      sqlgen.Statements
	implicit bool // a transaction needs no options

	beginning pgx.Batch // BEGIN

	// The parameters that every claim has, boxed once.
	consumer any
	wait     any // InFlightWait as a lock_timeout
	idle     any // IdleLimit as an idle_in_transaction_session_timeout
}

// New makes a Guard over a pool of pgx. It refuses a Config that cannot work with a *ConfigError and sends nothing:
// whether the table and the server are as they should be is for [Guard.Check] to say. A nil Config is one without a
// Consumer, which is required.
func New(db DB, cfg *Config) (*Guard, error) {
	if isNil(db) {
		return nil, errors.New("txidem: New needs a pool, got nil")
	}
	g, err := newGuard(cfg)
	if err != nil {
		return nil, err
	}
	g.db = db
	return g, nil
}

func newGuard(cfg *Config) (*Guard, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	c := cfg.resolve()
	if err := c.validate(); err != nil {
		return nil, err
	}
	g := &Guard{
		implicit: c.TxOptions == pgx.TxOptions{},
		cfg:      c,
		sql:      sqlgen.New(c.Schema, c.Table),
		consumer: c.Consumer,
		wait:     sqlgen.Timeout(c.InFlightWait),
		idle:     sqlgen.Timeout(c.IdleLimit),
	}
	g.cfg.TxOptions.BeginQuery = beginQuery(c.TxOptions)
	g.beginning = beginningWith(g.cfg.TxOptions)
	return g, nil
}

// ready says why the Guard cannot be used.
func (g *Guard) ready() error {
	if g == nil || g.db == nil && g.sqlDB == nil {
		return errors.New("txidem: the Guard is nil or its zero value: make it with New")
	}
	return nil
}

// pooled says why the Guard cannot begin transactions.
func (g *Guard) pooled() error {
	if err := g.ready(); err != nil {
		return err
	}
	if g.db == nil {
		return errors.New("txidem: the Guard is one of NewSQL, which begins no transaction for a handler: " +
			"use ClaimSQL in one of your own, or make the Guard with New")
	}
	return nil
}

// isNil finds a nil pointer in an interface too: a transaction whose Begin failed is usually passed on as one.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// Outcome is what became of a message that was delivered without an error. The zero value is none of them, so that it cannot
// be taken for one by mistake.
type Outcome int

const (
	// Processed means that the message's effect and its record are committed together: ack it. When the outcome of COMMIT
	// was unknown for a while, a copy of the message may be the one that was processed.
	Processed Outcome = iota + 1

	// Duplicate means that the message was processed before, and that nothing was done for it now: ack it. In a transaction
	// that the caller owns, skip the work.
	Duplicate

	// Unguarded means that the message has no id and there is no record of it: its effect is committed, or, in a transaction
	// that the caller owns, yet to be made. A redelivery makes it again.
	Unguarded

	// Claimed means that the record is made in a transaction that the caller owns, by [Guard.ClaimTx] or [Guard.ClaimSQL]: do
	// the work in it and commit, then ack.
	Claimed
)

// String returns "processed", "duplicate", "unguarded", "claimed", or "none" for anything else.
func (o Outcome) String() string {
	switch o {
	case Processed:
		return "processed"
	case Duplicate:
		return "duplicate"
	case Unguarded:
		return "unguarded"
	case Claimed:
		return "claimed"
	default:
		return "none"
	}
}

// outcomeOf keeps the rule that a delivery has an outcome or an error, never both.
func outcomeOf(o Outcome, err error) (Outcome, error) {
	if err != nil {
		return 0, err
	}
	return o, nil
}
