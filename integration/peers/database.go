package main

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// database belongs to one contender, so that no one works on tables that another one fills.
type database struct {
	name   string
	server string // the connection string of another database
	own    *pgxpool.Pool
}

const makeEffects = `CREATE TABLE effects (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, message_id text NOT NULL, cents bigint NOT NULL)`

// newDatabase makes an empty database with the handler's table.
func newDatabase(ctx context.Context, server string) (*database, error) {
	d := &database{name: "txidem_peers_" + strings.ToLower(rand.Text()[:16]), server: server}
	if err := d.admin(ctx, "CREATE DATABASE "+d.name); err != nil {
		return nil, err
	}
	config, err := d.config(1, true)
	if err == nil {
		d.own, err = connect(ctx, config)
	}
	if err == nil {
		_, err = d.own.Exec(ctx, makeEffects)
	}
	if err != nil {
		return nil, errors.Join(err, d.drop(ctx))
	}
	return d, nil
}

// spare connections are for what a library does beside the deliveries.
const spare = 8

// config is for a pool of a consumer that makes so many deliveries at once. Without sync the server does not wait for
// its disk.
func (d *database) config(deliveries int, sync bool) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(d.server)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.Database = d.name
	config.MinConns, config.MaxConns = int32(deliveries), int32(deliveries+spare)
	if !sync {
		config.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	}
	return config, nil
}

// connect makes a pool with its least connections, which it would otherwise make in its own time.
func connect(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	var held []*pgxpool.Conn
	for range config.MinConns {
		conn, acquireErr := pool.Acquire(ctx)
		if acquireErr != nil {
			err = acquireErr
			break
		}
		held = append(held, conn)
	}
	for _, conn := range held {
		conn.Release()
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// effects counts those of a message, or all of them when id is empty.
func (d *database) effects(ctx context.Context, id string) (n int, err error) {
	err = d.own.QueryRow(ctx, `SELECT count(*) FROM effects WHERE $1::text IN ('', message_id)`, id).Scan(&n)
	return n, err
}

func (d *database) drop(ctx context.Context) error {
	if d.own != nil {
		d.own.Close()
	}
	return d.admin(context.WithoutCancel(ctx), "DROP DATABASE "+d.name+" WITH (FORCE)")
}

// admin runs one statement in the server's own database.
func (d *database) admin(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, d.server)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql)
	return err
}
