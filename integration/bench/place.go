package main

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// place is where the contenders run, seen from the server.
type place struct {
	Name  string        `json:"name"`
	Delay time.Duration `json:"added_round_trip_ns"`
	Async bool          `json:"synchronous_commit_off"` // otherwise as the server has it
}

// The places. Loopback comes with and without the wait for the disk.
var (
	loopback  = place{Name: "loopback"}
	asyncLoop = place{Name: "loopback, synchronous_commit=off", Async: true}
	oneMilli  = place{Name: "1 ms", Delay: time.Millisecond}
	fiveMilli = place{Name: "5 ms", Delay: 5 * time.Millisecond}
)

func allPlaces() []place { return []place{loopback, asyncLoop, oneMilli, fiveMilli} }

// pool makes a pool whose connections all exist, at a place. watch, when it is not nil, counts their round trips.
func (l *lab) pool(ctx context.Context, at place, conns int, watch *turns) (*pgxpool.Pool, error) {
	dial, err := l.dialer(at)
	if err != nil {
		return nil, err
	}
	cfg := l.config.Copy()
	cfg.MaxConns, cfg.MinConns = int32(conns), int32(conns)
	cfg.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // a round trip that is not ours
	if at.Async {
		cfg.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	}
	cfg.ConnConfig.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := dial(ctx)
		if err == nil && watch != nil {
			conn = watch.watch(conn)
		}
		return conn, err
	}
	return pgxpool.NewWithConfig(ctx, cfg)
}

// dialer connects to the server, by way of a proxy where there is a delay. A proxy lives as long as the lab.
func (l *lab) dialer(at place) (func(ctx context.Context) (net.Conn, error), error) {
	if at.Delay == 0 {
		return l.dial, nil
	}
	if p, ok := l.proxies[at.Delay]; ok {
		return p.connect, nil
	}
	p, err := startProxy(l.dial, at.Delay)
	if err != nil {
		return nil, err
	}
	l.proxies[at.Delay] = p
	return p.connect, nil
}
