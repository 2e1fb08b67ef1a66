package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
)

// Report is all that a run has measured.
type Report struct {
	Machine Machine  `json:"machine"`
	Delays  []Delay  `json:"delays,omitempty"`
	Costs   []Cost   `json:"costs,omitempty"`
	Efforts []Effort `json:"efforts,omitempty"`
	Cells   []Cell   `json:"cells,omitempty"`
	Hot     *Hot     `json:"hot,omitempty"`
	Claims  []Claims `json:"claims,omitempty"`
	Targets []Target `json:"targets"`
}

// measure follows the plan.
func (l *lab) measure(ctx context.Context, p plan) (*Report, error) {
	r := &Report{}
	var err error
	if r.Machine, err = l.machine(ctx); err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context, plan, *Report) error{
		l.measureCosts, l.measureEfforts, l.measureCells, l.measureHot, l.measureClaims,
	} {
		if err := part(ctx, p, r); err != nil {
			return nil, err
		}
	}
	r.Targets = r.targets()
	return r, nil
}

func (l *lab) measureCosts(ctx context.Context, p plan, r *Report) (err error) {
	if p.costs == 0 {
		return nil
	}
	l.say("round trips and WAL bytes")
	if r.Delays, err = l.delays(ctx, p); err != nil {
		return err
	}
	r.Costs, err = l.costs(ctx, p)
	return err
}

func (l *lab) measureEfforts(ctx context.Context, p plan, r *Report) error {
	for _, workers := range p.effortWorkers {
		l.say("processor time, workers: %d", workers)
		efforts, err := l.effort(ctx, p, workers)
		if err != nil {
			return err
		}
		r.Efforts = append(r.Efforts, efforts...)
	}
	return nil
}

// measureCells goes through the matrix, and then through the shares of duplicates at two places with one worker.
func (l *lab) measureCells(ctx context.Context, p plan, r *Report) error {
	for _, at := range p.places {
		for _, workers := range p.workers {
			if err := l.addCell(ctx, p, r, at, workers, 0); err != nil {
				return err
			}
		}
	}
	for _, share := range p.duplicates {
		for _, at := range []place{loopback, oneMilli} {
			if err := l.addCell(ctx, p, r, at, 1, share); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lab) addCell(ctx context.Context, p plan, r *Report, at place, workers int, duplicates float64) error {
	l.say("%s, workers: %d, duplicates: %.0f %%", at.Name, workers, duplicates*100)
	c, err := l.cell(ctx, p, at, workers, duplicates)
	if err != nil {
		return err
	}
	r.Cells = append(r.Cells, c)
	return nil
}

func (l *lab) measureHot(ctx context.Context, p plan, r *Report) error {
	if p.hotCopies == 0 {
		return nil
	}
	l.say("%d copies in flight", p.hotCopies)
	h, err := l.hot(ctx, p)
	r.Hot = &h
	return err
}

func (l *lab) measureClaims(ctx context.Context, p plan, r *Report) (err error) {
	if len(p.tables) == 0 {
		return nil
	}
	l.say("claims in tables of %d records", p.tables)
	r.Claims, err = l.claims(ctx, p)
	return err
}

// writeJSON writes the report to a file.
func (r *Report) writeJSON(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("render %s: %w", file, err)
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// cost finds a contender's.
func (r *Report) cost(name string) (Cost, bool) {
	for _, c := range r.Costs {
		if c.Contender == name {
			return c, true
		}
	}
	return Cost{}, false
}

// effort finds a contender's.
func (r *Report) effort(workers int, name string) (Effort, bool) {
	for _, e := range r.Efforts {
		if e.Workers == workers && e.Contender == name {
			return e, true
		}
	}
	return Effort{}, false
}

// claims finds those of a table.
func (r *Report) claims(records int, ids idKind, phase string) (Claims, bool) {
	for _, c := range r.Claims {
		if c.Records == records && c.IDs == ids && c.Phase == phase {
			return c, true
		}
	}
	return Claims{}, false
}
