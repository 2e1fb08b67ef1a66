package main

import "time"

// plan says what is measured and how long.
type plan struct {
	places  []place
	workers []int
	cell    time.Duration // for each place and number of workers, and for each share of duplicates
	slice   time.Duration // the turn of a contender
	costs   int           // deliveries of each contender whose round trips and WAL bytes are counted
	pings   int           // round trips that show what a proxy really adds

	effortWorkers []int         // numbers of workers with which processor time is measured
	effortTurns   int           // of each contender
	effortSlice   time.Duration // about as long as one

	duplicates []float64 // shares of deliveries besides 0, on loopback and at 1 ms
	hotCopies  int       // in flight at once
	hotRounds  int
	hotTurn    time.Duration // the copies wait for the first half of it

	tables      []int // records in the tables that are claimed in
	claims      int   // in each table and phase
	afterChkpnt int   // claims in each table right after a checkpoint
}

// fullPlan is for about nine minutes.
func fullPlan() plan {
	return plan{
		places: allPlaces(), workers: []int{1, 4, 16},
		cell: 24 * time.Second, slice: 100 * time.Millisecond,
		costs: 200, pings: 200,
		effortWorkers: []int{1, 16}, effortTurns: 50, effortSlice: 60 * time.Millisecond,
		duplicates: []float64{0.1, 1}, hotCopies: 200, hotRounds: 10, hotTurn: 500 * time.Millisecond,
		tables: []int{0}, claims: 1000, afterChkpnt: 200,
	}
}

// quickPlan is for a minute: the same cells, with too few deliveries for a steady p99.
func quickPlan() plan {
	p := fullPlan()
	p.cell, p.slice = 1300*time.Millisecond, 30*time.Millisecond
	p.costs, p.pings = 20, 50
	p.effortTurns, p.effortSlice = 12, 30*time.Millisecond
	p.hotRounds = 2
	p.claims, p.afterChkpnt = 200, 50
	return p
}

// processorPlan is for two minutes: what fullPlan has of processor time.
func processorPlan() plan {
	p := fullPlan()
	return plan{effortWorkers: p.effortWorkers, effortTurns: p.effortTurns, effortSlice: p.effortSlice}
}

// sizePlan is for a quarter of an hour, most of which fills tables.
func sizePlan() plan {
	return plan{tables: []int{0, 1_000_000, 10_000_000}, claims: 2000, afterChkpnt: 500}
}
