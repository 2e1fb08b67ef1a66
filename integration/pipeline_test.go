package integration

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// queueOne is the ordinary handler of a pipeline: it queues one row.
func (w *world) queueOne(_ context.Context, b *pgx.Batch) error {
	w.calls.Add(1)
	b.Queue(`INSERT INTO biz (v) VALUES ($1)`, "ok")
	return nil
}

// requirePipeline asserts the result of one delivery.
func (w *world) requirePipeline(want txidem.Outcome, id string, fn txidem.PipelineHandler) {
	w.t.Helper()
	got, err := w.guard.Pipeline(w.t.Context(), id, fn)
	require.NoError(w.t, err)
	require.Equal(w.t, want.String(), got.String())
}

func TestPipeline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.requirePipeline(txidem.Processed, "m", w.queueOne)
	w.requirePipeline(txidem.Duplicate, "m", w.queueOne)
	w.requireOutcome(txidem.Duplicate, "m", w.ok)
	w.requireOutcome(txidem.Processed, "n", w.ok)
	w.requirePipeline(txidem.Duplicate, "n", w.queueOne)
	w.requireEffects(2)
}

// A pipeline whose statements need a transaction block, or have callbacks, is one transaction all the same.
func TestPipelineForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var v string
	for name, fn := range map[string]txidem.PipelineHandler{
		"statements": w.queueOne,
		"savepoint": func(ctx context.Context, b *pgx.Batch) error {
			b.Queue(`SAVEPOINT a`)
			b.Queue(`INSERT INTO biz (v) VALUES ('undone')`)
			b.Queue(`ROLLBACK TO a`)
			return w.queueOne(ctx, b)
		},
		"callback": func(_ context.Context, b *pgx.Batch) error {
			b.Queue(`INSERT INTO biz (v) VALUES ($1) RETURNING v`, "ok").QueryRow(func(row pgx.Row) error { return row.Scan(&v) })
			return nil
		},
		"named arguments": func(_ context.Context, b *pgx.Batch) error {
			b.Queue(`INSERT INTO biz (v) VALUES (@v)`, pgx.NamedArgs{"v": "ok"})
			return nil
		},
		"semicolon": func(_ context.Context, b *pgx.Batch) error {
			b.Queue(`INSERT INTO biz (v) VALUES ('ok');`)
			return nil
		},
		"nothing queued": func(context.Context, *pgx.Batch) error { return nil },
	} {
		w.requirePipeline(txidem.Processed, name, fn)
		w.requirePipeline(txidem.Duplicate, name, fn)
	}
	require.Equal(t, "ok", v)
	require.Equal(t, 5, w.count(`SELECT count(*) FROM biz WHERE v = 'ok'`))
	require.Equal(t, 5, w.count(`SELECT count(*) FROM biz`))
	w.db.Invariant(t)
}

// An error of a statement, of a callback or of the handler rolls everything back and leaves the id free.
func TestPipelineFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine := errors.New("mine")
	for name, fn := range map[string]txidem.PipelineHandler{
		"first": func(_ context.Context, b *pgx.Batch) error { b.Queue(`SELECT 1/0`); b.Queue(`SELECT 1`); return nil },
		"last": func(_ context.Context, b *pgx.Batch) error {
			b.Queue(`INSERT INTO biz (v) VALUES ('x')`)
			b.Queue(`SELECT 1/0`)
			return nil
		},
		"syntax":   func(_ context.Context, b *pgx.Batch) error { b.Queue(`SELEC 1`); return nil },
		"table":    func(_ context.Context, b *pgx.Batch) error { b.Queue(`INSERT INTO nowhere VALUES (1)`); return nil },
		"argument": func(_ context.Context, b *pgx.Batch) error { b.Queue(`SELECT $1::int`, make(chan int)); return nil },
		"callback": func(_ context.Context, b *pgx.Batch) error {
			b.Queue(`INSERT INTO biz (v) VALUES ('x')`).Exec(func(pgconn.CommandTag) error { return mine })
			return nil
		},
		"handler": func(_ context.Context, b *pgx.Batch) error { b.Queue(`INSERT INTO biz (v) VALUES ('x')`); return mine },
		"control": func(_ context.Context, b *pgx.Batch) error {
			b.Queue(`INSERT INTO biz (v) VALUES ('x')`)
			b.Queue(`commit`)
			return nil
		},
		"call": func(_ context.Context, b *pgx.Batch) error {
			b.Queue(`INSERT INTO biz (v) VALUES ('x')`)
			b.Queue(`DO $$BEGIN COMMIT; END$$`)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			outcome, err := w.guard.Pipeline(t.Context(), "m", fn)
			t.Log(err)
			require.Error(t, err)
			require.Zero(t, outcome)
			require.Equal(t, 0, w.count(`SELECT count(*) FROM biz`))
			require.Equal(t, 0, w.count(`SELECT count(*) FROM txidem_messages`))
		})
	}
	w.requirePipeline(txidem.Processed, "m", w.queueOne)
	w.requireEffects(1)
}

// An error names the statement and the next step.
func TestPipelineErrorsSayWhichStatement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for sql, want := range map[string]string{
		"INSERT INTO nowhere VALUES (1)": "statement 2 of the pipeline was not sent",
		"SELECT 1/0":                     "statement 2 of the pipeline: ERROR: division by zero",
		"rollback":                       "statement 2 of the pipeline is ROLLBACK: leave it out",
		"copy biz from stdin":            "statement 2 of the pipeline is COPY FROM STDIN",
	} {
		_, err := w.guard.Pipeline(t.Context(), "m", func(ctx context.Context, b *pgx.Batch) error {
			defer b.Queue(sql)
			return w.queueOne(ctx, b)
		})
		require.ErrorContains(t, err, want)
	}
	w.requireEffects(0)
}
