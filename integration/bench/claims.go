package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gonum.org/v1/gonum/stat"
)

// Claims are the figures of claims in one table. Times are of the claim alone, without BEGIN and COMMIT, on loopback, in
// milliseconds. Bytes and images are means.
type Claims struct {
	Records  int     `json:"records"`
	IDs      idKind  `json:"ids"`
	Phase    string  `json:"phase"`
	Claims   int     `json:"claims"`
	P50      float64 `json:"p50_ms"`
	P95      float64 `json:"p95_ms"`
	P99      float64 `json:"p99_ms"`
	WALBytes float64 `json:"wal_bytes"`
	Images   float64 `json:"full_page_images"`

	BytesWithout float64 `json:"wal_bytes_without_images"` // of the claims that wrote no full-page image
	Duplicate    float64 `json:"duplicate_wal_bytes"`      // median
}

// The phases. In a large table random ids go on meeting pages that were not written to since the checkpoint, so that
// the later claims write images too.
const (
	afterCheckpoint = "right after a checkpoint"
	later           = "later"
)

// claimRun is one phase in one table.
type claimRun struct {
	table              *claimTable
	times              []time.Duration
	bytes, images      []float64
	without, duplicate []float64
}

// claims fills the tables, and then claims in all of them in turns. It drops them again.
func (l *lab) claims(ctx context.Context, p plan) (all []Claims, err error) {
	var tables []*claimTable
	for _, records := range p.tables {
		tables = append(tables, newClaimTable(random, records), newClaimTable(ordered, records))
	}
	defer func() {
		for _, t := range tables {
			if dropErr := l.exec(context.WithoutCancel(ctx), `DROP TABLE IF EXISTS `+t.name); err == nil {
				err = dropErr
			}
		}
	}()
	for _, t := range tables {
		if err := t.make(ctx, l); err != nil {
			return nil, err
		}
	}
	pool, err := l.pool(ctx, loopback, 1, nil)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	return l.claimPhases(ctx, p, tables, pool)
}

// claimPhases warms up, so that statements are prepared and the empty tables have pages, and measures both phases.
func (l *lab) claimPhases(ctx context.Context, p plan, tables []*claimTable, pool *pgxpool.Pool) ([]Claims, error) {
	if _, err := claimPhase(ctx, pool, tables, "", p.afterChkpnt); err != nil {
		return nil, err
	}
	if err := l.exec(ctx, `CHECKPOINT`); err != nil {
		return nil, fmt.Errorf("the role must be allowed to force a checkpoint: %w", err)
	}
	first, err := claimPhase(ctx, pool, tables, afterCheckpoint, p.afterChkpnt)
	if err != nil {
		return nil, err
	}
	second, err := claimPhase(ctx, pool, tables, later, p.claims)
	return append(first, second...), err
}

func claimPhase(ctx context.Context, pool *pgxpool.Pool, tables []*claimTable, phase string, rounds int) ([]Claims, error) {
	runs := make([]claimRun, len(tables))
	for i, t := range tables {
		runs[i].table = t
	}
	for range rounds {
		for _, i := range rand.Perm(len(runs)) {
			if err := runs[i].claim(ctx, pool); err != nil {
				return nil, err
			}
		}
	}
	all := make([]Claims, len(runs))
	for i := range runs {
		all[i] = runs[i].figures(phase)
	}
	return all, nil
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
