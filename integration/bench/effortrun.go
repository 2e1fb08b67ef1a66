package main

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/integration/bench/cputime"
)

// effortRun is all contenders with what they have done. Each has turns of always the same number of deliveries, whose
// ids are made before: making them would count as the client's work.
type effortRun struct {
	*field
	meter *cputime.Meter
	sizes []int          // deliveries in a turn, by contender
	turns [][]effortTurn // by contender
}

// maxPerTurn keeps the tables from outgrowing the server's buffers by what large batches write.
const maxPerTurn = 2000

func newEffortRun(cs []contender, ids source, workers int) *effortRun {
	return &effortRun{field: newField(cs, ids, workers), sizes: make([]int, len(cs)), turns: make([][]effortTurn, len(cs))}
}

func (r *effortRun) measure(ctx context.Context, p plan, pool *pgxpool.Pool) error {
	if err := connect(ctx, pool); err != nil {
		return err
	}
	if err := r.warmUp(ctx); err != nil {
		return err
	}
	if err := r.size(ctx, p); err != nil {
		return err
	}
	var err error
	if r.meter, err = cputime.NewMeter(ctx, pool); err != nil {
		return err
	}
	for range p.effortTurns {
		for _, i := range rand.Perm(len(r.contenders)) {
			if err := r.turn(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// sizings is how often it is found out how many deliveries fit into a slice. The most counts: what disturbs the machine
// makes it fewer.
const sizings = 3

func (r *effortRun) size(ctx context.Context, p plan) error {
	for range sizings {
		for i, c := range r.contenders {
			s, err := c.turn(ctx, r.ids, r.workers, p.effortSlice)
			if err != nil {
				return err
			}
			r.warm[i].add(s)
			r.sizes[i] = max(r.sizes[i], r.workers, min(len(s.times), maxPerTurn/c.batch))
		}
	}
	return nil
}

// turn is the ith contender's.
func (r *effortRun) turn(ctx context.Context, i int) error {
	c := r.contenders[i]
	deliveries := make([][]string, r.sizes[i])
	for n := range deliveries {
		deliveries[n] = r.ids.take(c.batch)
	}
	before, err := r.meter.Read()
	if err != nil {
		return err
	}
	s, err := c.share(ctx, deliveries, r.workers)
	if err != nil {
		return err
	}
	after, err := r.meter.Read()
	r.measured[i].add(s)
	r.turns[i] = append(r.turns[i], effortTurn{after.Since(before), c.batch * len(deliveries), s.perSecond()})
	return err
}

func (r *effortRun) efforts() []Effort {
	plain, rows := r.turnsOf(plainName), r.turnsOf(plainRowsName)
	all := make([]Effort, len(r.contenders))
	for i, c := range r.contenders {
		turns, missing := r.turns[i], r.meter.Missing()
		all[i] = r.effort(c, turns)
		all[i].P50, _, _ = percentiles(r.measured[i].times)
		all[i].Ratio = reading{ratioOf(turns, plain, effortTurn.both), missing}
		all[i].RowsRatio = reading{ratioOf(turns, rows, effortTurn.both), missing}
		all[i].RateRatio = ratioOf(turns, plain, effortTurn.rate)
	}
	return all
}

func (r *effortRun) turnsOf(name string) []effortTurn {
	return r.turns[slices.IndexFunc(r.contenders, func(c contender) bool { return c.name == name })]
}

func (r *effortRun) effort(c contender, turns []effortTurn) Effort {
	return Effort{
		Contender: c.name, Workers: r.workers, Batch: c.batch, Turns: len(turns), Messages: turns[0].messages,
		PerSecond: medianOf(turns, effortTurn.rate),
		Client:    reading{medianOf(turns, effortTurn.clientTime), r.meter.Client},
		Server:    reading{medianOf(turns, effortTurn.serverTime), r.meter.Server},
		Both:      reading{medianOf(turns, effortTurn.both), r.meter.Missing()},
		Missing:   r.meter.Missing(),
	}
}
