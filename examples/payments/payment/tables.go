package payment

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// CreateTables makes the tables of this package in the schema that comes first in the pool's search_path. Nothing in
// them keeps a message from being charged twice: a service would do well to add a unique constraint, but here it is the
// handlers that are on trial.
func CreateTables(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, `
		CREATE TABLE charges (
			id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			message_id   text   NOT NULL,
			account      text   NOT NULL,
			amount_cents bigint NOT NULL
		);
		CREATE TABLE ledger (
			charge_id    bigint NOT NULL REFERENCES charges,
			account      text   NOT NULL,
			amount_cents bigint NOT NULL
		)`)
	return err
}
