package txidem

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/internal/sqlgen"
)

// DB is what a Guard needs of a pool: *pgxpool.Pool has it. A Guard takes one connection at a time, so a pool of one is
// enough.
type DB interface {
	Acquire(ctx context.Context) (*pgxpool.Conn, error)
}

// Guard gives the messages of one consumer an exactly-once effect. It is safe for concurrent use and meant to be made
// once and shared. It holds no connection between calls.
type Guard struct {
	db       DB
	cfg      Config
	sql      sqlgen.Statements
	implicit bool // a transaction needs no options

	// The parameters that every claim has, boxed once.
	consumer any
	wait     any // InFlightWait as a lock_timeout
	idle     any // IdleLimit as an idle_in_transaction_session_timeout
}

// New makes a Guard. It refuses a Config that cannot work with a *ConfigError and sends nothing: whether the table and
// the server are as they should be is for [Guard.Check] to say.
func New(db DB, cfg *Config) (*Guard, error) {
	if isNil(db) {
		return nil, errors.New("txidem: New needs a pool, got nil")
	}
	if cfg == nil {
		cfg = &Config{}
	}
	c := cfg.resolve()
	if err := c.validate(); err != nil {
		return nil, err
	}
	g := &Guard{
		db:       db,
		implicit: c.TxOptions == pgx.TxOptions{},
		cfg:      c,
		sql:      sqlgen.New(c.Schema, c.Table),
		consumer: c.Consumer,
		wait:     sqlgen.Timeout(c.InFlightWait),
		idle:     sqlgen.Timeout(c.IdleLimit),
	}
	g.cfg.TxOptions.BeginQuery = beginQuery(c.TxOptions)
	return g, nil
}
