package main

import (
	"context"
	"fmt"
)

// Cell is one place, number of workers and share of duplicates, with the figures of all contenders.
type Cell struct {
	Place      place     `json:"place"`
	Workers    int       `json:"workers"`
	Duplicates float64   `json:"duplicates"`
	Figures    []Figures `json:"figures"`
}

// cell measures one Cell.
func (l *lab) cell(ctx context.Context, p plan, at place, workers int, duplicates float64) (Cell, error) {
	ids, err := l.fresh(ctx, duplicates)
	if err != nil {
		return Cell{}, err
	}
	pool, err := l.pool(ctx, at, workers, nil)
	if err != nil {
		return Cell{}, err
	}
	defer pool.Close()
	c, err := newClient(pool)
	if err != nil {
		return Cell{}, err
	}
	f := newField(c.contenders(), ids, workers)
	if err := f.run(ctx, p); err != nil {
		return Cell{}, fmt.Errorf("%s, %d workers: %w", at.Name, workers, err)
	}
	effects, records := f.expected()
	if err := l.audit(ctx, effects, records+len(ids.old)); err != nil {
		return Cell{}, fmt.Errorf("%s, %d workers: %w", at.Name, workers, err)
	}
	return Cell{at, workers, duplicates, f.figures()}, nil
}
