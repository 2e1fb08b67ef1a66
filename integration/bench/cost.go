package main

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// Cost is what a delivery costs whatever the machine: medians over single deliveries on a warm connection, so that what
// happens now and then is left out, such as other sessions' WAL, or a page split in a delivery of one message. The
// WAL is that of effect, record and commit together, for each message.
type Cost struct {
	Contender           string  `json:"contender"`
	RoundTrips          float64 `json:"round_trips"`
	WALBytes            float64 `json:"wal_bytes"`
	Dedupes             bool    `json:"dedupes"` // otherwise there are no duplicates
	DuplicateRoundTrips float64 `json:"duplicate_round_trips"`
	DuplicateWALBytes   float64 `json:"duplicate_wal_bytes"`
}

// costRun counts for one connection at a time.
type costRun struct {
	lab    *lab
	turns  *turns
	counts []costCounts // by contender
}

type costCounts struct{ trips, wal, dupTrips, dupWAL []float64 }

// costs measures every contender's Cost, in tables that are small and were written to since the last checkpoint.
func (l *lab) costs(ctx context.Context, p plan) ([]Cost, error) {
	if _, err := l.fresh(ctx, 0); err != nil {
		return nil, err
	}
	run := costRun{lab: l, turns: &turns{}}
	pool, err := l.pool(ctx, loopback, 1, run.turns)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	c, err := newClient(pool)
	if err != nil {
		return nil, err
	}
	all := c.contenders()
	for n := range warmTurns + p.costs {
		if n == warmTurns {
			run.counts = nil // what came before was the warm-up
		}
		if err := run.round(ctx, all); err != nil {
			return nil, err
		}
	}
	return run.results(all), nil
}

func (r *costRun) round(ctx context.Context, all []contender) error {
	if r.counts == nil {
		r.counts = make([]costCounts, len(all))
	}
	for _, i := range rand.Perm(len(all)) {
		if err := r.deliver(ctx, all[i], &r.counts[i]); err != nil {
			return fmt.Errorf("%s: %w", all[i].name, err)
		}
	}
	return nil
}

// deliver counts one delivery, and one more of the same messages where there are duplicates.
func (r *costRun) deliver(ctx context.Context, c contender, into *costCounts) error {
	ids := source{}.take(c.batch)
	trips, wal, err := r.count(ctx, c, ids, tally{processed: c.batch})
	if err != nil {
		return err
	}
	into.trips, into.wal = append(into.trips, trips), append(into.wal, wal)
	if !c.records {
		return nil
	}
	trips, wal, err = r.count(ctx, c, ids, tally{duplicates: c.batch})
	into.dupTrips, into.dupWAL = append(into.dupTrips, trips), append(into.dupWAL, wal)
	return err
}

func (r *costRun) count(ctx context.Context, c contender, ids []string, want tally) (trips, wal float64, err error) {
	before, err := r.lab.walPosition(ctx)
	if err != nil {
		return 0, 0, err
	}
	turns := r.turns.n.Load()
	got, err := c.deliver(ctx, ids)
	if err == nil && got != want {
		err = fmt.Errorf("%+v, want %+v", got, want)
	}
	if err != nil {
		return 0, 0, err
	}
	trips = float64(r.turns.n.Load() - turns)
	after, err := r.lab.walPosition(ctx)
	return trips, float64(after-before) / float64(c.batch), err
}

// walPosition is how many bytes of WAL the server has ever written.
func (l *lab) walPosition(ctx context.Context) (n int64, err error) {
	err = l.own.QueryRow(ctx, `SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint`).Scan(&n)
	return n, err
}

func (r *costRun) results(all []contender) []Cost {
	costs := make([]Cost, len(all))
	for i, c := range all {
		n := r.counts[i]
		costs[i] = Cost{Contender: c.name, RoundTrips: median(n.trips), WALBytes: median(n.wal), Dedupes: c.records}
		if c.records {
			costs[i].DuplicateRoundTrips, costs[i].DuplicateWALBytes = median(n.dupTrips), median(n.dupWAL)
		}
	}
	return costs
}
