package main

import (
	"context"
	"math/rand/v2"
	"time"
)

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
	if err := f.warmUp(ctx); err != nil {
		return err
	}
	start := time.Now()
	for n := 0; time.Since(start) < p.cell; n++ {
		if err := f.round(ctx, n, f.contenders, p.slice, f.measured); err != nil {
			return err
		}
	}
	return nil
}

func (f *field) warmUp(ctx context.Context) error {
	for n := range warmTurns {
		if err := f.round(ctx, n, f.warmers(), 0, f.warm); err != nil {
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
