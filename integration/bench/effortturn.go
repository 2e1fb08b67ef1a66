package main

import (
	"time"

	"github.com/txidem/txidem-go/integration/bench/cputime"
)

// effortTurn is what one turn took.
type effortTurn struct {
	cputime.Spent
	messages  int
	perSecond float64
}

func (t effortTurn) clientTime() float64 { return t.perMessage(t.Client) }
func (t effortTurn) serverTime() float64 { return t.perMessage(t.Server) }
func (t effortTurn) both() float64       { return t.perMessage(t.Client + t.Server) }
func (t effortTurn) rate() float64       { return t.perSecond }

// perMessage is in microseconds.
func (t effortTurn) perMessage(d time.Duration) float64 {
	return d.Seconds() * 1e6 / float64(t.messages)
}

func medianOf(turns []effortTurn, number func(effortTurn) float64) float64 {
	values := make([]float64, len(turns))
	for i, t := range turns {
		values[i] = number(t)
	}
	return median(values)
}

// ratioOf is the median of the ratios of two contenders in each round: what disturbs the machine for longer than a round
// hits both sides of a ratio.
func ratioOf(turns, base []effortTurn, number func(effortTurn) float64) float64 {
	ratios := make([]float64, len(turns))
	for i := range turns {
		ratios[i] = number(turns[i]) / number(base[i])
	}
	return median(ratios)
}
