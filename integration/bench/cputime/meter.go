package cputime

import (
	"context"
	"errors"
	"time"
)

// Meter reads the processor time of both sides. A side that cannot be read here is left at zero, and why is told.
type Meter struct {
	backends *Backends

	// Client and Server say why there is no reading of a side, and are empty when there is one.
	Client, Server string
}

// Spent is the processor time of both sides, since they began or in between.
type Spent struct{ Client, Server time.Duration }

// Since returns what was spent after an earlier reading.
func (s Spent) Since(before Spent) Spent {
	return Spent{s.Client - before.Client, s.Server - before.Server}
}

// NewMeter finds the backends of all connections to db's database, which must be there by now.
func NewMeter(ctx context.Context, db Querier) (*Meter, error) {
	m := &Meter{}
	if _, err := Client(); err != nil {
		m.Client = err.Error()
	}
	var err error
	m.backends, err = Find(ctx, db)
	if errors.Is(err, ErrNotMeasurable) {
		m.Server, err = err.Error(), nil
	}
	return m, err
}

// Missing says why there is no sum of both sides, or is empty.
func (m *Meter) Missing() string {
	if m.Client != "" {
		return m.Client
	}
	return m.Server
}

// Read fails when a backend has ended: its time is lost then.
func (m *Meter) Read() (s Spent, err error) {
	if m.Client == "" {
		s.Client, err = Client()
	}
	if m.Server == "" && err == nil {
		s.Server, err = m.backends.Time()
	}
	return s, err
}
