package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/examples/payments/internal/worker"
	"github.com/txidem/txidem-go/examples/payments/payment"
	"github.com/txidem/txidem-go/migrations"
)

// dropLimit bounds the removal of a schema: a killed worker's transaction may still hold locks for a moment.
const dropLimit = 15 * time.Second

// schema holds the tables of one run. Its name is new, so that nothing in the database is touched but it.
type schema struct {
	name string
	pool *pgxpool.Pool // with the schema as its search_path
}

// createSchema makes a schema with the tables of the business and the record table of txidem.
func createSchema(ctx context.Context, dsn string, mode worker.Mode) (*schema, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("payments_%s_%s", mode, strings.ToLower(rand.Text()[:10]))
	cfg.ConnConfig.RuntimeParams["search_path"] = name
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{name}.Sanitize()); err != nil {
		pool.Close()
		return nil, fmt.Errorf("create schema %s: %w", name, err)
	}
	s := &schema{name: name, pool: pool}
	if err := s.createTables(ctx); err != nil {
		return nil, errors.Join(err, s.drop(ctx))
	}
	return s, nil
}

func (s *schema) createTables(ctx context.Context) error {
	if err := payment.CreateTables(ctx, s.pool); err != nil {
		return fmt.Errorf("create the tables in schema %s: %w", s.name, err)
	}
	_, err := migrations.Apply(ctx, s.pool, &migrations.Config{Schema: s.name})
	return err
}

// drop removes the schema, even when ctx has ended.
func (s *schema) drop(ctx context.Context) error {
	defer s.pool.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropLimit)
	defer cancel()
	if _, err := s.pool.Exec(ctx, "DROP SCHEMA "+pgx.Identifier{s.name}.Sanitize()+" CASCADE"); err != nil {
		return fmt.Errorf("drop schema %s: %w", s.name, err)
	}
	return nil
}
