package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gonum.org/v1/gonum/stat"
)

// claimRun is one phase in one table.
type claimRun struct {
	table              *claimTable
	times              []time.Duration
	bytes, images      []float64
	without, duplicate []float64
}

// walPerTimed is how many claims are made for their WAL with each one for its time: about one in seventy splits a page of
// the index and writes four thousand bytes, so that a mean takes thousands of claims to settle.
const walPerTimed = 10

// claim makes one claim for its time and several for their WAL, in one transaction, and then a duplicate.
func (r *claimRun) claim(ctx context.Context, pool *pgxpool.Pool) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		took, err := r.table.timed(ctx, tx)
		r.times = append(r.times, took)
		for i := 0; i < walPerTimed && err == nil; i++ {
			err = r.weigh(ctx, tx)
		}
		return err
	})
	if err != nil {
		return err
	}
	wal, err := r.table.explained(ctx, pool, r.table.last)
	r.duplicate = append(r.duplicate, wal.Bytes)
	return err
}

// weigh claims a new id for its WAL.
func (r *claimRun) weigh(ctx context.Context, tx pgx.Tx) error {
	id, err := r.table.fresh()
	if err != nil {
		return err
	}
	wal, err := r.table.explained(ctx, tx, id)
	if err != nil {
		return err
	}
	r.bytes = append(r.bytes, wal.Bytes)
	r.images = append(r.images, wal.Images)
	if wal.Images == 0 {
		r.without = append(r.without, wal.Bytes)
	}
	return nil
}

func (r *claimRun) figures(phase string) Claims {
	c := Claims{
		Records: r.table.records, IDs: r.table.ids, Phase: phase, Claims: len(r.times),
		WALBytes: stat.Mean(r.bytes, nil), Images: stat.Mean(r.images, nil), Duplicate: median(r.duplicate),
	}
	c.P50, c.P95, c.P99 = percentiles(r.times)
	if len(r.without) > 0 {
		c.BytesWithout = stat.Mean(r.without, nil)
	}
	return c
}
