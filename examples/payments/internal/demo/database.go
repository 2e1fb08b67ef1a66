package demo

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/integration/pgserver"
)

// database is the PostgreSQL that the demo uses.
type database struct {
	dsn  string
	line string // says which one it is
	stop func() error
}

// openDatabase takes the server of dsn, or finds or starts one when dsn is empty.
func openDatabase(ctx context.Context, dsn string) (*database, error) {
	if dsn != "" {
		return openDSN(ctx, dsn)
	}
	server, err := pgserver.Start(ctx, pgserver.Options{Order: pgserver.DemoOrder()})
	if err != nil {
		return nil, err
	}
	return &database{dsn: server.DSN(), line: server.String(), stop: server.Stop}, nil
}

func openDSN(ctx context.Context, dsn string) (*database, error) {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("read -dsn: %w", err)
	}
	defer pool.Close()
	var version string
	if err := pool.QueryRow(ctx, "SHOW server_version").Scan(&version); err != nil {
		return nil, fmt.Errorf("ask the server of -dsn for its version: %w", err)
	}
	return &database{dsn: dsn, line: "PostgreSQL " + version + ", from -dsn", stop: func() error { return nil }}, nil
}
