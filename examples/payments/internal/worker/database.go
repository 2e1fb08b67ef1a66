package worker

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/examples/payments/internal/broker"
	"github.com/txidem/txidem-go/txidem"
)

// openPool connects to the run's schema. One connection is enough for one message at a time.
func openPool(ctx context.Context, cfg Config, reports io.Writer) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(cfg.DSN)
	if err != nil {
		return nil, err
	}
	pc.MaxConns = 1
	pc.ConnConfig.RuntimeParams["search_path"] = cfg.Schema
	pc.ConnConfig.Tracer = commitTracer{reports}
	return pgxpool.NewWithConfig(ctx, pc)
}

// newGuard makes the guard of the worker and has it check that table and server are fit for the promise. A copy in
// flight is waited for no longer than half of what the broker grants for the whole delivery.
func newGuard(ctx context.Context, pool *pgxpool.Pool, schema string) (*txidem.Guard, error) {
	guard, err := txidem.New(pool, &txidem.Config{
		Consumer:     broker.Consumer,
		Schema:       schema,
		InFlightWait: broker.AckWait / 2,
		RequireID:    true,
	})
	if err != nil {
		return nil, err
	}
	return guard, guard.Check(ctx)
}
