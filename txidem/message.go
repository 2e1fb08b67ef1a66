package txidem

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// load is what a delivery carries through its attempts: one message, or several of a batch.
type load interface {
	// open begins the transaction and claims in it, where there is something to claim. Without an error there is a
	// transaction in which run is to be called, or, when it is nil, the outcome stands.
	open(ctx context.Context, conn *pgxpool.Conn, before past) (*transaction, Outcome, error)

	// run is the handler.
	run(ctx context.Context, tx pgx.Tx) error

	// guarded reports whether there is a claim, which can be asked for when the outcome of COMMIT is unknown.
	guarded() bool
}

// message is one message and its handler.
type message struct {
	g     *Guard
	id    string
	fn    Handler
	hasID bool
}

func (m *message) open(ctx context.Context, conn *pgxpool.Conn, before past) (*transaction, Outcome, error) {
	if !m.hasID {
		t, err := m.g.beginUnguarded(ctx, conn)
		return t, 0, err
	}
	t, claimed, err := m.g.begin(ctx, conn, m.g.cfg.TxOptions, m.id)
	if err != nil || claimed {
		return t, 0, err
	}
	found, err := m.g.lookAndRollback(ctx, t, m.id)
	if err != nil {
		return nil, 0, err
	}
	outcome, err := m.g.verdict(found, m.id, before)
	return nil, outcome, err
}

func (m *message) run(ctx context.Context, tx pgx.Tx) error { return m.fn(ctx, tx) }

func (m *message) guarded() bool { return m.hasID }
