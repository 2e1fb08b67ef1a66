package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/integration/bench/cputime"
)

// meter reads the processor time of both sides. A side that cannot be read here is left out, and why is kept.
type meter struct {
	backends       *cputime.Backends
	client, server string // why there is no reading of this side, or empty
}

// spent is the processor time of both sides, since they began or in a turn.
type spent struct{ client, server time.Duration }

func (s spent) since(before spent) spent {
	return spent{s.client - before.client, s.server - before.server}
}

// newMeter finds the backends of the pool, which must have all its connections by now.
func newMeter(ctx context.Context, pool *pgxpool.Pool) (*meter, error) {
	m := &meter{}
	if _, err := cputime.Client(); err != nil {
		m.client = err.Error()
	}
	var err error
	m.backends, err = cputime.Find(ctx, pool)
	if errors.Is(err, cputime.ErrNotMeasurable) {
		m.server, err = err.Error(), nil
	}
	return m, err
}

// missing is why there is no sum of both sides, or empty.
func (m *meter) missing() string {
	if m.client != "" {
		return m.client
	}
	return m.server
}

// read fails when a backend has ended: its time is lost then.
func (m *meter) read() (s spent, err error) {
	if m.client == "" {
		s.client, err = cputime.Client()
	}
	if m.server == "" && err == nil {
		s.server, err = m.backends.Time()
	}
	return s, err
}
