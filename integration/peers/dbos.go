package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// dbosTransaction is a DBOS workflow of one transactional step, with the message's id as the workflow's. Its records are
// kept in the database of the effects, which needs the fewest transactions.
func dbosTransaction() peer {
	return peer{name: "DBOS, RunAsTransaction", module: "github.com/dbos-inc/dbos-transact-golang", open: openDBOS}
}

// dbosRetries is how often a step is tried again. It has to be within the workflow: the error of a workflow is its result,
// and the same id has that result again.
const dbosRetries = 3

// dbosConsumer is one executor.
type dbosConsumer struct {
	pool     *pgxpool.Pool
	executor dbos.Context
	workflow dbos.Workflow[string, bool]
}

func openDBOS(ctx context.Context, config *pgxpool.Config, h *handler) (consumer, error) {
	pool, err := connect(ctx, config)
	if err != nil {
		return nil, err
	}
	c := &dbosConsumer{pool: pool}
	if err := c.launch(ctx, h); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *dbosConsumer) launch(ctx context.Context, h *handler) (err error) {
	c.executor, err = dbos.NewContext(ctx, dbos.Config{
		AppName: "peers", SystemDBPool: c.pool, ExecutorID: uuid.NewString(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	source, err := dbos.NewDataSource(c.executor, c.pool)
	if err != nil {
		return err
	}
	c.workflow = func(ctx dbos.Context, id string) (bool, error) {
		return dbos.RunAsTransaction(ctx, source, func(ctx context.Context, tx dbos.Tx) (bool, error) {
			return true, h.handle(ctx, id, func(ctx context.Context, sql string, args ...any) error {
				_, err := tx.Exec(ctx, sql, args...)
				return err
			})
		}, dbos.WithStepMaxRetries(dbosRetries))
	}
	dbos.RegisterWorkflow(c.executor, c.workflow, dbos.WithWorkflowName("effect"))
	return dbos.Launch(c.executor)
}

func (c *dbosConsumer) deliver(ctx context.Context, id string) error {
	handle, err := dbos.RunWorkflow(c.executor, c.workflow, id, dbos.WithWorkflowID(id))
	if err != nil {
		return err
	}
	_, err = handle.GetResult()
	return errors.Join(err, ctx.Err())
}

// dbosEnd bounds the end of an executor.
const dbosEnd = 10 * time.Second

func (c *dbosConsumer) close() {
	if c.executor != nil {
		_ = dbos.Shutdown(c.executor, dbosEnd) // what it has left running ends with its pool
	}
	c.pool.Close()
}
