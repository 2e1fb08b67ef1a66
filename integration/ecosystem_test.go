package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// guest is something that was made for a pgx.Tx and knows nothing of txidem.
type guest struct {
	name    string
	setup   func(w *world)
	use     func(ctx context.Context, w *world, tx pgx.Tx) error
	visible string // counts what use leaves behind
	want    int
}

const bizRows = `SELECT count(*) FROM biz`

var guests = []guest{
	{name: "sqlc", visible: bizRows, want: 2, use: useSQLC},
	{name: "river", visible: `SELECT count(*) FROM river_job WHERE kind = 'guest'`, want: 3, setup: setupRiver, use: useRiver},
	{name: "CopyFrom", visible: bizRows, want: 1000, use: useCopyFrom},
	{name: "SendBatch", visible: bizRows, want: 3, use: useSendBatch},
	{name: "BeginFunc", visible: bizRows, want: 1, use: useBeginFunc},
	{name: "BeginFunc rolled back", visible: bizRows, want: 1, use: useBeginFuncRolledBack},
	{name: "nested in nested", visible: `SELECT count(*) FROM biz WHERE v IN ('outer', 'kept')`, want: 2, use: useNested},
	{name: "large objects", visible: `SELECT count(*) FROM pg_largeobject_metadata`, want: 1, use: useLargeObjects},
	{name: "CollectRows", visible: bizRows, want: 5, use: useCollectRows},
	{name: "Prepare", visible: bizRows, want: 2, use: usePrepare},
	{name: "Conn", visible: bizRows, want: 1, use: useConn},
}

// The handed transaction is a pgx.Tx to everybody who takes one: what they do through it is rolled back with the
// delivery, and committed with it, once.
func TestHandedTransactionIsAPgxTx(t *testing.T) {
	t.Parallel()
	for _, g := range guests {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if g.setup != nil {
				g.setup(w)
			}
			handler := func(ctx context.Context, tx pgx.Tx) error {
				w.calls.Add(1)
				return g.use(ctx, w, tx)
			}
			_, err := w.guard.Process(t.Context(), "m", func(ctx context.Context, tx pgx.Tx) error {
				require.NoError(t, handler(ctx, tx))
				return io.EOF
			})
			require.Equal(t, io.EOF, err)
			require.Zero(t, w.count(g.visible), "rolled back")
			require.Zero(t, w.count(`SELECT count(*) FROM txidem_messages`))

			w.requireOutcome(txidem.Processed, "m", handler)
			w.requireOutcome(txidem.Duplicate, "m", handler)
			require.Equal(t, g.want, w.count(g.visible), "committed once")
			require.Equal(t, 1, w.count(`SELECT count(*) FROM txidem_messages`))
			w.requireCalls(2)
			w.db.Invariant(t)
		})
	}
}

// dbtx and queries have the shape of the code that sqlc generates for pgx/v5.
type dbtx interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

type queries struct{ db dbtx }

func (q *queries) WithTx(tx pgx.Tx) *queries { return &queries{db: tx} }

func (q *queries) addRow(ctx context.Context, v string) (id int64, err error) {
	err = q.db.QueryRow(ctx, `INSERT INTO biz (v) VALUES ($1) RETURNING id`, v).Scan(&id)
	return id, err
}

func (q *queries) listRows(ctx context.Context) (values []string, err error) {
	rows, err := q.db.Query(ctx, `SELECT v FROM biz ORDER BY id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, rows.Err()
}

func (q *queries) touchRow(ctx context.Context, id int64) error {
	tag, err := q.db.Exec(ctx, `UPDATE biz SET v = v || '!' WHERE id = $1`, id)
	if err == nil && tag.RowsAffected() != 1 {
		return fmt.Errorf("%d rows updated", tag.RowsAffected())
	}
	return err
}

func useSQLC(ctx context.Context, w *world, tx pgx.Tx) error {
	q := (&queries{db: w.pool}).WithTx(tx)
	id, err := q.addRow(ctx, "first")
	if err != nil {
		return err
	}
	if _, err := q.addRow(ctx, "second"); err != nil {
		return err
	}
	if err := q.touchRow(ctx, id); err != nil {
		return err
	}
	values, err := q.listRows(ctx)
	require.Equal(w.t, []string{"first!", "second"}, values)
	return err
}

// guestJob is the job that the handler enqueues.
type guestJob struct {
	N int `json:"n"`
}

func (guestJob) Kind() string { return "guest" }

func setupRiver(w *world) {
	w.t.Helper()
	migrator, err := rivermigrate.New(riverpgxv5.New(w.pool), nil)
	require.NoError(w.t, err)
	_, err = migrator.Migrate(w.t.Context(), rivermigrate.DirectionUp, nil)
	require.NoError(w.t, err)
}

// useRiver enqueues jobs with a client that only inserts: one at a time, and many in one call.
func useRiver(ctx context.Context, w *world, tx pgx.Tx) error {
	client, err := river.NewClient(riverpgxv5.New(w.pool), &river.Config{})
	if err != nil {
		return err
	}
	result, err := client.InsertTx(ctx, tx, guestJob{N: 1}, nil)
	if err != nil {
		return err
	}
	require.Positive(w.t, result.Job.ID)
	_, err = client.InsertManyTx(ctx, tx, []river.InsertManyParams{{Args: guestJob{N: 2}}, {Args: guestJob{N: 3}}})
	return err
}

func useCopyFrom(ctx context.Context, w *world, tx pgx.Tx) error {
	n, err := tx.CopyFrom(ctx, pgx.Identifier{"biz"}, []string{"v"},
		pgx.CopyFromSlice(1000, func(i int) ([]any, error) { return []any{fmt.Sprint(i)}, nil }))
	require.Equal(w.t, int64(1000), n)
	return err
}

func useSendBatch(ctx context.Context, w *world, tx pgx.Tx) error {
	var inserted int64
	var total int
	b := &pgx.Batch{}
	for _, v := range []string{"a", "b", "c"} {
		b.Queue(`INSERT INTO biz (v) VALUES ($1)`, v).Exec(func(tag pgconn.CommandTag) error {
			inserted += tag.RowsAffected()
			return nil
		})
	}
	b.Queue(bizRows).QueryRow(func(row pgx.Row) error { return row.Scan(&total) })
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	require.Equal(w.t, int64(3), inserted)
	require.Equal(w.t, 3, total)
	return nil
}

func useBeginFunc(ctx context.Context, _ *world, tx pgx.Tx) error {
	return pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error { return insert(ctx, nested, "kept") })
}

func useBeginFuncRolledBack(ctx context.Context, w *world, tx pgx.Tx) error {
	err := pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error {
		return errors.Join(insert(ctx, nested, "undone"), io.ErrNoProgress)
	})
	require.ErrorIs(w.t, err, io.ErrNoProgress)
	return insert(ctx, tx, "after it")
}

func insert(ctx context.Context, tx pgx.Tx, v string) error {
	_, err := tx.Exec(ctx, `INSERT INTO biz (v) VALUES ($1)`, v)
	return err
}

// useNested keeps one savepoint of the second level and undoes another, by an error of the server.
func useNested(ctx context.Context, w *world, tx pgx.Tx) error {
	return pgx.BeginFunc(ctx, tx, func(outer pgx.Tx) error {
		if err := insert(ctx, outer, "outer"); err != nil {
			return err
		}
		if err := pgx.BeginFunc(ctx, outer, func(inner pgx.Tx) error { return insert(ctx, inner, "kept") }); err != nil {
			return err
		}
		err := pgx.BeginFunc(ctx, outer, func(inner pgx.Tx) error {
			if err := insert(ctx, inner, "undone"); err != nil {
				return err
			}
			_, err := inner.Exec(ctx, `SELECT 1/0`)
			return err
		})
		requireState(w.t, "22012", err)
		var rows int
		err = outer.QueryRow(ctx, bizRows).Scan(&rows)
		require.Equal(w.t, 2, rows)
		return err
	})
}

// useLargeObjects writes more than one page, seeks, and reads back what it wrote.
func useLargeObjects(ctx context.Context, w *world, tx pgx.Tx) error {
	objects := tx.LargeObjects()
	oid, err := objects.Create(ctx, 0)
	if err != nil {
		return err
	}
	object, err := objects.Open(ctx, oid, pgx.LargeObjectModeRead|pgx.LargeObjectModeWrite)
	if err != nil {
		return err
	}
	want := bytes.Repeat([]byte("large"), 5000)
	if _, err := object.Write(want); err != nil {
		return err
	}
	if _, err := object.Seek(0, io.SeekStart); err != nil {
		return err
	}
	got, err := io.ReadAll(object)
	if err != nil {
		return err
	}
	require.Equal(w.t, want, got)
	return object.Close()
}

func useCollectRows(ctx context.Context, w *world, tx pgx.Tx) error {
	type row struct {
		ID int64
		V  string
	}
	rows, err := tx.Query(ctx, `INSERT INTO biz (v) SELECT n::text FROM generate_series(1, 5) AS n RETURNING id, v`)
	if err != nil {
		return err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	require.Len(w.t, all, 5)
	return err
}

func usePrepare(ctx context.Context, w *world, tx pgx.Tx) error {
	statement, err := tx.Prepare(ctx, "add", `INSERT INTO biz (v) VALUES ($1)`)
	if err != nil {
		return err
	}
	require.Len(w.t, statement.ParamOIDs, 1)
	for _, v := range []string{"a", "b"} {
		if _, err := tx.Exec(ctx, "add", v); err != nil {
			return err
		}
	}
	return nil
}

// useConn sends through the connection below the transaction, as libraries do for its type map or for COPY to a writer.
func useConn(ctx context.Context, w *world, tx pgx.Tx) error {
	require.NotNil(w.t, tx.Conn().TypeMap())
	if err := insert(ctx, tx, "copied"); err != nil {
		return err
	}
	var out bytes.Buffer
	_, err := tx.Conn().PgConn().CopyTo(ctx, &out, `COPY (SELECT v FROM biz) TO STDOUT`)
	require.Equal(w.t, "copied\n", out.String())
	return err
}
