package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/migrations"
)

// lab is the database that everything is measured in, and the ways to it. Pools are made by one goroutine.
type lab struct {
	config  *pgxpool.Config
	own     *pgxpool.Pool // for what is not measured
	proxies map[time.Duration]*proxy
	say     func(format string, args ...any) // progress
}

// newLab makes the tables in the database of dsn, which must be empty.
func newLab(ctx context.Context, dsn string, say func(format string, args ...any)) (*lab, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	own, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	l := &lab{config: config, own: own, proxies: map[time.Duration]*proxy{}, say: say}
	if err := l.makeTables(ctx); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

const makeEffects = `CREATE TABLE bench_effects (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, message_id text NOT NULL, cents bigint NOT NULL)`

func (l *lab) makeTables(ctx context.Context) error {
	if _, err := migrations.Apply(ctx, l.own, nil); err != nil {
		return err
	}
	return l.exec(ctx, makeEffects)
}

func (l *lab) exec(ctx context.Context, sql string, args ...any) error {
	_, err := l.own.Exec(ctx, sql, args...)
	return err
}

// dial connects to the server without a delay.
func (l *lab) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	network, address := pgconn.NetworkAddress(l.config.ConnConfig.Host, l.config.ConnConfig.Port)
	return d.DialContext(ctx, network, address)
}

// close ends the connections. Pools on a proxy must be closed before.
func (l *lab) close() {
	l.own.Close()
	for _, p := range l.proxies {
		p.close()
	}
}

// seedSize is how many messages are recorded before a cell with duplicates.
const seedSize = 1000

// fresh empties the tables and records the messages that are duplicates in what follows.
func (l *lab) fresh(ctx context.Context, duplicates float64) (source, error) {
	err := l.exec(ctx, `TRUNCATE txidem_messages, bench_effects`)
	if err != nil || duplicates == 0 {
		return source{}, err
	}
	s := source{duplicates: duplicates, old: source{}.take(seedSize)}
	return s, l.exec(ctx, `INSERT INTO txidem_messages (message_id, consumer, processed_at)
SELECT id, $2::text, now() FROM unnest($1::text[]) AS id`, s.old, consumer)
}

// audit counts the rows of both tables.
func (l *lab) audit(ctx context.Context, effects, records int) error {
	var gotEffects, gotRecords int
	err := l.own.QueryRow(ctx, `SELECT (SELECT count(*) FROM bench_effects), (SELECT count(*) FROM txidem_messages)`).
		Scan(&gotEffects, &gotRecords)
	if err != nil {
		return err
	}
	if gotEffects != effects || gotRecords != records {
		return fmt.Errorf("the tables hold %d effects and %d records: the contenders reported %d and %d",
			gotEffects, gotRecords, effects, records)
	}
	return nil
}
