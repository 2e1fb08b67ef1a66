package main

import "time"

// effortTurn is what one turn took.
type effortTurn struct {
	spent
	messages  int
	perSecond float64
}

func (t effortTurn) clientTime() float64 { return t.perMessage(t.client) }
func (t effortTurn) serverTime() float64 { return t.perMessage(t.server) }
func (t effortTurn) both() float64       { return t.perMessage(t.client + t.server) }
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
