package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// Cost is what a message costs with one consumer. Processor times are microseconds a message, medians over the turns, of
// this process and of all backends of the contender's database; ratios are medians of those in each round.
type Cost struct {
	Contender string   `json:"contender"`
	Sync      bool     `json:"waits_for_disk"` // otherwise synchronous_commit=off
	Messages  int      `json:"messages_per_turn"`
	P50       float64  `json:"p50_ms"`
	P50Ratio  float64  `json:"p50_to_plain"`
	Client    *float64 `json:"client_us"` // null where they cannot be read
	Server    *float64 `json:"server_us"`
	Both      *float64 `json:"both_us"`
	Ratio     *float64 `json:"both_to_plain"`
	Missing   string   `json:"not_measurable,omitempty"` // why there are nulls
}

// race gives each contender one turn in each round, in a new order.
func race(ctx context.Context, all []*contender, p plan, sync bool) ([]Cost, error) {
	lanes := make([]*lane, len(all))
	for i, c := range all {
		defer c.rest()
		var err error
		if lanes[i], err = newLane(ctx, c, p, sync); err != nil {
			return nil, err
		}
	}
	for range p.rounds {
		for _, i := range rand.Perm(len(lanes)) {
			if err := lanes[i].turn(ctx); err != nil {
				return nil, err
			}
		}
	}
	costs := make([]Cost, len(lanes))
	for i, l := range lanes {
		if err := l.audit(ctx); err != nil {
			return nil, err
		}
		costs[i] = l.cost(lanes[0])
		costs[i].Sync = sync
	}
	return costs, nil
}

func (l *lane) cost(plain *lane) Cost {
	c := Cost{Contender: l.name, Messages: l.size, Missing: l.turns[0].missing}
	c.P50 = median(l.times).Seconds() * 1000
	c.P50Ratio = median(l.times).Seconds() / median(plain.times).Seconds()
	if c.Missing != "" {
		return c
	}
	client, server, both := l.each(turn.client), l.each(turn.server), l.each(turn.both)
	ratios := make([]float64, len(both))
	for i, base := range plain.each(turn.both) {
		ratios[i] = both[i] / base
	}
	c.Client, c.Server, c.Both, c.Ratio = medianOf(client), medianOf(server), medianOf(both), medianOf(ratios)
	return c
}

func medianOf(values []float64) *float64 {
	m := median(values)
	return &m
}

func (l *lane) each(number func(turn) float64) []float64 {
	all := make([]float64, len(l.turns))
	for i, t := range l.turns {
		all[i] = number(t)
	}
	return all
}

func (t turn) client() float64 { return t.perMessage(t.Client) }
func (t turn) server() float64 { return t.perMessage(t.Server) }
func (t turn) both() float64   { return t.perMessage(t.Client + t.Server) }

// perMessage is in microseconds.
func (t turn) perMessage(d time.Duration) float64 { return d.Seconds() * 1e6 / float64(t.messages) }

func median[T float64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
