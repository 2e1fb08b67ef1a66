package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// measure does all of it on a server.
func measure(ctx context.Context, server string, p plan) (r *Report, err error) {
	r = newReport()
	var all []*contender
	defer func() { err = errors.Join(err, endAll(ctx, all)) }()
	for _, peer := range peers() {
		if peer.missing != "" {
			r.Missing = append(r.Missing, Missing{peer.name, peer.missing})
			continue
		}
		c, err := newContender(ctx, server, peer)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	if r.PostgreSQL, err = serverVersion(ctx, server); err != nil {
		return nil, err
	}
	for _, sync := range []bool{false, true} {
		costs, err := race(ctx, all, p, sync)
		if err != nil {
			return nil, err
		}
		r.Costs = append(r.Costs, costs...)
	}
	r.Effects, err = tryAll(ctx, all, p)
	return r, err
}

func serverVersion(ctx context.Context, dsn string) (version string, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version')`).Scan(&version)
	return version, err
}
