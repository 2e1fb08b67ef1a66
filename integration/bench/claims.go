package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
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

// claims fills the tables, all at once, and then claims in them in turns. It drops them again.
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
	filling, fillCtx := errgroup.WithContext(ctx)
	for _, t := range tables {
		filling.Go(func() error { return t.make(fillCtx, l) })
	}
	if err := filling.Wait(); err != nil {
		return nil, err
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
