package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Cell is one place, number of workers and share of duplicates, with the figures of all contenders.
type Cell struct {
	Place      place     `json:"place"`
	Workers    int       `json:"workers"`
	Duplicates float64   `json:"duplicates"`
	Figures    []Figures `json:"figures"`
}

// cell measures one Cell.
func (l *lab) cell(ctx context.Context, p plan, at place, workers int, duplicates float64) (Cell, error) {
	ids, err := l.fresh(ctx, duplicates)
	if err != nil {
		return Cell{}, err
	}
	pool, err := l.pool(ctx, at, workers, nil)
	if err != nil {
		return Cell{}, err
	}
	defer pool.Close()
	c, err := newClient(pool)
	if err != nil {
		return Cell{}, err
	}
	f := newField(c.contenders(), ids, workers)
	if err := f.run(ctx, p); err != nil {
		return Cell{}, fmt.Errorf("%s, %d workers: %w", at.Name, workers, err)
	}
	effects, records := f.expected()
	if err := l.audit(ctx, effects, records+len(ids.old)); err != nil {
		return Cell{}, fmt.Errorf("%s, %d workers: %w", at.Name, workers, err)
	}
	return Cell{at, workers, duplicates, f.figures()}, nil
}

// field is all contenders of a cell, with what they have done.
type field struct {
	contenders []contender
	ids        source
	workers    int
	warm       []stretch
	measured   []stretch
}

func newField(cs []contender, ids source, workers int) *field {
	return &field{cs, ids, workers, make([]stretch, len(cs)), make([]stretch, len(cs))}
}

// warmTurns is how often each worker delivers before it counts. It makes it likely that each connection has prepared each
// statement; one that has not takes a round trip more, once.
const warmTurns = 5

// run warms up and then makes whole rounds until the cell's time is over.
func (f *field) run(ctx context.Context, p plan) error {
	for n := range warmTurns {
		if err := f.round(ctx, n, f.warmers(), 0, f.warm); err != nil {
			return err
		}
	}
	start := time.Now()
	for n := 0; time.Since(start) < p.cell; n++ {
		if err := f.round(ctx, n, f.contenders, p.slice, f.measured); err != nil {
			return err
		}
	}
	return nil
}

// warmers are the contenders with small batches: the statements are the same.
func (f *field) warmers() []contender {
	small := make([]contender, len(f.contenders))
	for i, c := range f.contenders {
		c.batch = min(c.batch, 2)
		small[i] = c
	}
	return small
}

// round gives each contender of the nth round one turn, in a new order. Batches of a thousand are in each tenth round:
// they would take most of the time.
func (f *field) round(ctx context.Context, n int, cs []contender, slice time.Duration, into []stretch) error {
	for _, i := range rand.Perm(len(cs)) {
		if n%max(1, cs[i].batch/100) != 0 {
			continue
		}
		s, err := cs[i].turn(ctx, f.ids, f.workers, slice)
		if err != nil {
			return err
		}
		into[i].add(s)
	}
	return nil
}

// expected is how many rows both tables must hold, without those that were there before.
func (f *field) expected() (effects, records int) {
	for i, c := range f.contenders {
		n := f.warm[i].processed + f.measured[i].processed
		effects += n
		if c.records {
			records += n
		}
	}
	return effects, records
}

func (f *field) figures() []Figures {
	all := make([]Figures, len(f.contenders))
	for i, c := range f.contenders {
		all[i] = figuresOf(c, &f.measured[i])
	}
	for i := range all {
		all[i].relate(all[0], all[1])
	}
	return all
}
