package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Hot is what copies of one message that are in flight together do to the other messages, which go on by Process.
type Hot struct {
	Copies  int     `json:"copies"`
	Workers int     `json:"workers"` // for the other messages
	Quiet   Figures `json:"quiet"`   // the others, without the copies
	Busy    Figures `json:"busy"`    // the others, with them

	// From the end of the first copy's handler until each copy was answered, in milliseconds.
	AnsweredP50 float64 `json:"answered_p50_ms"`
	AnsweredP99 float64 `json:"answered_p99_ms"`
}

const (
	hotWorkers = 4
	spareConns = 20 // left to the server's own needs, and to other programs
)

// hotRun has two pools, so that copies that wait for each other do not take the others' connections.
type hotRun struct {
	lab         *lab
	others      contender
	herd        *herd
	turn        time.Duration
	quiet, busy stretch
	answered    []time.Duration
}

// hot measures turns with and without copies in flight.
func (l *lab) hot(ctx context.Context, p plan) (Hot, error) {
	if _, err := l.fresh(ctx, 0); err != nil {
		return Hot{}, err
	}
	copies, err := l.affordable(ctx, p.hotCopies)
	if err != nil {
		return Hot{}, err
	}
	pool, err := l.pool(ctx, loopback, hotWorkers, nil)
	if err != nil {
		return Hot{}, err
	}
	defer pool.Close()
	c, err := newClient(pool)
	if err != nil {
		return Hot{}, err
	}
	h, err := newHerd(ctx, l, copies)
	if err != nil {
		return Hot{}, err
	}
	defer h.pool.Close()
	r := &hotRun{lab: l, others: single(processName, true, c.process), herd: h, turn: p.hotTurn}
	return r.run(ctx, p.hotRounds)
}

// affordable is how many of the wanted connections the server has left.
func (l *lab) affordable(ctx context.Context, wanted int) (n int, err error) {
	err = l.own.QueryRow(ctx, `SELECT least($1::int, current_setting('max_connections')::int - $2::int
  - (SELECT count(*) FROM pg_stat_activity)::int)`, wanted, spareConns).Scan(&n)
	if err == nil && n < 2 {
		err = fmt.Errorf("the server has no connections left for copies in flight: raise max_connections")
	}
	return n, err
}

func (r *hotRun) run(ctx context.Context, rounds int) (Hot, error) {
	warm, err := r.others.turn(ctx, source{}, hotWorkers, r.turn)
	if err != nil {
		return Hot{}, err
	}
	for range rounds {
		turns := []func(context.Context) error{r.quietTurn, r.busyTurn}
		for _, i := range rand.Perm(len(turns)) {
			if err := turns[i](ctx); err != nil {
				return Hot{}, err
			}
		}
	}
	n := warm.processed + r.quiet.processed + r.busy.processed + rounds // one of each herd
	if err := r.lab.audit(ctx, n, n); err != nil {
		return Hot{}, fmt.Errorf("copies in flight: %w", err)
	}
	out := Hot{Copies: r.herd.size, Workers: hotWorkers, Quiet: figuresOf(r.others, &r.quiet), Busy: figuresOf(r.others, &r.busy)}
	out.AnsweredP50, _, out.AnsweredP99 = percentiles(r.answered)
	return out, nil
}

func (r *hotRun) quietTurn(ctx context.Context) error {
	s, err := r.others.turn(ctx, source{}, hotWorkers, r.turn)
	r.quiet.add(s)
	return err
}

// busyTurn begins when all copies wait; half-way through, the first one is let go.
func (r *hotRun) busyTurn(ctx context.Context) error {
	if err := r.herd.gather(ctx); err != nil {
		return err
	}
	timer := time.AfterFunc(r.turn/2, r.herd.letGo)
	defer timer.Stop()
	s, err := r.others.turn(ctx, source{}, hotWorkers, r.turn)
	r.busy.add(s)
	answered, herdErr := r.herd.wait()
	r.answered = append(r.answered, answered...)
	if err == nil {
		err = herdErr
	}
	return err
}
