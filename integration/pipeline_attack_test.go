package integration

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/pgbouncer"
	"github.com/txidem/txidem-go/integration/pgproxy"
	"github.com/txidem/txidem-go/integration/testdb"
	"github.com/txidem/txidem-go/txidem"
)

// forms are handlers that queue the ordinary row, one for each way to make a pipeline a transaction.
func (w *world) forms() map[string]txidem.PipelineHandler {
	return map[string]txidem.PipelineHandler{
		"statement": w.queueOne,
		"rows around it": func(ctx context.Context, b *pgx.Batch) error {
			b.Queue(`SELECT generate_series(1, 3)`)
			defer b.Queue(`SELECT generate_series(1, 3)`)
			return w.queueOne(ctx, b)
		},
		"savepoint": func(ctx context.Context, b *pgx.Batch) error {
			b.Queue(`SAVEPOINT a`)
			return w.queueOne(ctx, b)
		},
		"named arguments": func(_ context.Context, b *pgx.Batch) error {
			w.calls.Add(1)
			b.Queue(`INSERT INTO biz (v) VALUES (@v)`, pgx.NamedArgs{"v": "ok"})
			return nil
		},
		"callback": func(_ context.Context, b *pgx.Batch) error {
			w.calls.Add(1)
			b.Queue(`INSERT INTO biz (v) VALUES ($1)`, "ok").Exec(func(pgconn.CommandTag) error { return nil })
			return nil
		},
	}
}

// lateRefusal has COMMIT refused, with an SQLSTATE, for a row of the business table whose v matches.
func (w *world) lateRefusal(state, v string) {
	w.t.Helper()
	w.exec(fmt.Sprintf(`CREATE OR REPLACE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS
		$$BEGIN IF NEW.v LIKE '%s' THEN RAISE EXCEPTION 'late' USING ERRCODE = '%s'; END IF; RETURN NULL; END$$`, v, state))
	w.exec(`DROP TRIGGER IF EXISTS late ON biz`)
	w.exec(`CREATE CONSTRAINT TRIGGER late AFTER INSERT ON biz DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION late()`)
}

// A COMMIT that is refused is never taken for one, whatever the form, the answer and the way it comes back.
func TestPipelineWhoseCommitIsRefused(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode)
		for _, state := range []string{"23505", "57014", "U0001"} {
			w.lateRefusal(state, "%")
			for name, fn := range w.forms() {
				for _, id := range []string{"m", ""} {
					outcome, err := w.guard.Pipeline(t.Context(), id, fn)
					require.ErrorContains(t, err, state, name)
					require.Zero(t, outcome)
				}
			}
			w.requireEffects(0)
		}
	})
}

// howToNotReturn are the two ways in which a function can fail to return.
var howToNotReturn = map[string]func(){"panic": func() { panic("no return") }, "Goexit": runtime.Goexit}

// leaver is an argument and a rewriter that does not return.
type leaver struct{ leave func() }

func (l leaver) Value() (driver.Value, error) { l.leave(); return "x", nil }

type rewriter struct{ leaver }

func (r rewriter) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	r.leave()
	return "", nil, nil
}

// unwind calls fn in a goroutine that may not return from it.
func unwind(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		fn()
	}()
	<-done
}

// Nothing that a pipeline calls has to return: nothing is stored, and the only connection of the pool is sound or gone.
func TestPipelineWhoseCodeDoesNotReturn(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode, conns(1))
		for _, leave := range howToNotReturn {
			for _, queue := range []func(b *pgx.Batch){
				func(*pgx.Batch) { leave() },
				func(b *pgx.Batch) { b.Queue(`SELECT $1::text`, leaver{leave}) },
				func(b *pgx.Batch) { b.Queue(`SELECT 1`, rewriter{leaver{leave}}) },
				func(b *pgx.Batch) {
					b.Queue(`SELECT generate_series(1, 9999)`).Exec(func(pgconn.CommandTag) error { leave(); return nil })
					b.Queue(`SELECT generate_series(1, 9999)`)
				},
				func(b *pgx.Batch) {
					b.Queue(`SELECT generate_series(1, 9999)`).Query(func(rows pgx.Rows) error { rows.Next(); leave(); return nil })
				},
			} {
				unwind(func() {
					_, _ = w.guard.Pipeline(t.Context(), "m", func(ctx context.Context, b *pgx.Batch) error {
						defer queue(b)
						return w.queueOne(ctx, b)
					})
				})
				w.requireEffects(0)
			}
		}
		w.requirePipeline(txidem.Processed, "m", w.queueOne)
		w.requireEffects(1)
	})
}

// hiding are callbacks that keep the error of their statement to themselves, or leave its rows unread.
var hiding = map[string]func(*pgx.QueuedQuery){
	"row":        func(q *pgx.QueuedQuery) { q.QueryRow(func(row pgx.Row) error { _ = row.Scan(new(int)); return nil }) },
	"row unread": func(q *pgx.QueuedQuery) { q.QueryRow(func(pgx.Row) error { return nil }) },
	"rows":       func(q *pgx.QueuedQuery) { q.Query(func(pgx.Rows) error { return nil }) },
	"exec":       func(q *pgx.QueuedQuery) { q.Fn = func(br pgx.BatchResults) error { _, _ = br.Exec(); return nil } },
	"query":      func(q *pgx.QueuedQuery) { q.Fn = func(br pgx.BatchResults) error { _, _ = br.Query(); return nil } },
}

// A statement that failed is not committed over, whatever its callback makes of the error.
func TestPipelineWhoseCallbackHidesAnError(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode)
		for name, hide := range hiding {
			for _, failing := range []string{
				`SELECT 1 / (random()::int * 0)`, `SELECT 10 / (3 - n) FROM generate_series(1, 99) AS n`,
			} {
				for _, more := range []int{0, 1} {
					_, err := w.guard.Pipeline(t.Context(), "m", func(ctx context.Context, b *pgx.Batch) error {
						require.NoError(t, w.queueOne(ctx, b))
						hide(b.Queue(failing))
						for range more {
							b.Queue(`INSERT INTO biz (v) VALUES ('behind')`)
						}
						return nil
					})
					require.Error(t, err, name)
				}
			}
		}
		w.requireEffects(0)
	})
}

// Statements of every kind, before and behind the ordinary one: what PostgreSQL refuses in a transaction block is an error
// with nothing stored, everything else is in the one transaction.
func TestPipelineOfUnusualStatements(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode)
		w.exec(`CREATE PROCEDURE committing() LANGUAGE plpgsql AS 'BEGIN INSERT INTO biz (v) VALUES (''x''); COMMIT; END'`)
		done := 0
		for sql, state := range map[string]string{
			`VACUUM biz`:  "25001",
			`DISCARD ALL`: "25001",
			`LISTEN x`:    "",
			`NOTIFY x`:    "",
			`(SELECT 1)`:  "",

			`CREATE INDEX CONCURRENTLY i ON biz(v)`: "25001",

			`CALL committing()`:             "2D000",
			`DO $$BEGIN COMMIT; END$$`:      "2D000",
			`SET LOCAL lock_timeout = '1s'`: "",
			`COPY biz TO STDOUT`:            "",
			`EXPLAIN ANALYZE SELECT 1`:      "",
			`DECLARE c CURSOR FOR SELECT 1`: "",

			`LOCK TABLE biz IN SHARE ROW EXCLUSIVE MODE`:    "",
			`CREATE TEMP TABLE made (n int) ON COMMIT DROP`: "",
		} {
			for _, first := range []bool{true, false} {
				_, err := w.guard.Pipeline(t.Context(), fmt.Sprint(sql, first), func(ctx context.Context, b *pgx.Batch) error {
					if first {
						b.Queue(sql)
					} else {
						defer b.Queue(sql)
					}
					return w.queueOne(ctx, b)
				})
				if state != "" {
					require.ErrorContains(t, err, state, sql)
					continue
				}
				require.NoError(t, err, sql)
				done++
			}
		}
		w.requireEffects(done)
	})
}

// A pool of dead connections costs a pipeline no attempt where the server has said so, nor a second call of the handler:
// what it has queued is sent again, rewritten arguments and callbacks included.
func TestPipelineOverDeadConnections(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode, conns(3), func(c *pgxpool.Config) { c.MinConns = 3 }, retries(txidem.RetryPolicy{MaxAttempts: 1}))
		forms := w.forms()
		for id, fn := range forms {
			for _, want := range []txidem.Outcome{txidem.Processed, txidem.Duplicate} {
				w.fillPool()
				w.terminateOthers()
				w.requirePipeline(want, id, fn)
			}
		}
		w.requireCalls(int64(2 * len(forms)))
		w.requireEffects(len(forms))
	})
}

// The bound of the claim is not the statements', nor that of whoever has the connection next.
func TestPipelineSeesTheSessionsLockTimeout(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode, conns(1))
		w.exec(`SET lock_timeout = '7s'`)
		for id, before := range map[string]string{"implicit": `SELECT 1`, "block": `SAVEPOINT a`} {
			show := func(_ context.Context, b *pgx.Batch) error {
				b.Queue(before)
				b.Queue(`INSERT INTO biz (v) SELECT current_setting('lock_timeout')`)
				return nil
			}
			w.requirePipeline(txidem.Processed, id, show)
			w.requirePipeline(txidem.Duplicate, id, show)
			require.Equal(t, "7s", w.setting("lock_timeout"))
		}
		require.Equal(t, 2, w.count(`SELECT count(*) FROM biz WHERE v = '7s'`))
		w.requireEffects(2)
	})
}

// DDL behind the back of what was prepared, and its loss, do not fail a pipeline.
func TestTableChangesUnderAPreparedPipeline(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode, conns(1))
		statements := []string{
			`ALTER TABLE txidem_messages ADD COLUMN note text`,
			`ALTER TABLE txidem_messages ALTER COLUMN processed_at TYPE timestamptz(3)`,
			`ALTER TABLE txidem_messages ALTER COLUMN message_id TYPE varchar(2000) COLLATE "C"`,
			`ALTER TABLE txidem_messages ALTER COLUMN message_id TYPE text COLLATE "C"`,
			`DISCARD ALL`,
		}
		w.requirePipeline(txidem.Processed, "warm", w.queueOne)
		w.requirePipeline(txidem.Duplicate, "warm", w.queueOne)
		for i, sql := range statements {
			require.NoError(t, w.pool.AcquireFunc(t.Context(), func(c *pgxpool.Conn) error {
				return c.Conn().PgConn().Exec(t.Context(), sql).Close() // past pgx, which would prepare it
			}))
			id := fmt.Sprintf("m%d", i)
			w.requirePipeline(txidem.Processed, id, w.queueOne)
			w.requirePipeline(txidem.Duplicate, id, w.queueOne)
		}
		w.requireEffects(len(statements) + 1)
	})
}

// The caller's context ends while the claim waits for a copy that fails afterwards: the delivery is an error, what is left
// of it on the server ends, and either all of it is stored or nothing.
func TestPipelineWhoseContextEndsBehindACopy(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode, inFlightWait(300*time.Millisecond))
		for name, fn := range w.forms() {
			first := w.hold(w.guard, name)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			_, err := w.guard.Pipeline(ctx, name, fn)
			cancel()
			require.Error(t, err)
			first.end(errors.New("failed"))
			_, err = w.guard.Pipeline(t.Context(), name, fn)
			require.NoError(t, err)
			w.db.Invariant(t)
		}
		w.requireEffects(len(w.forms()))
	})
}

// A guard's own isolation level or BEGIN makes a block of every pipeline, and a batch's transaction.
func TestPipelinesAndBatchesWithABeginOfTheirOwn(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode, func(c *txidem.Config) {
			c.TxOptions.BeginQuery = "START TRANSACTION ISOLATION LEVEL SERIALIZABLE /* mine */"
		})
		for _, want := range []txidem.Outcome{txidem.Processed, txidem.Duplicate} {
			for id, fn := range w.forms() {
				w.requirePipeline(want, id, fn)
			}
			require.Equal(t, []string{want.String(), want.String()}, w.deliverBatch(w.insertAll, []string{"a", "b"}))
		}
		w.requireEffects(len(w.forms()) + 2)
	})
}

// PgBouncer in transaction mode: every form, its duplicate, and a COMMIT that is refused.
func TestPipelineFormsThroughPgBouncer(t *testing.T) {
	t.Parallel()
	if !pgbouncer.Installed() {
		t.Skip("no pgbouncer on the PATH")
	}
	bouncer := pgbouncer.Start(t, testdb.New(t).DSN())
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		w := newWorld(t, execMode(mode), func(c *pgxpool.Config) { bouncer.Through(c.ConnConfig) })
		w.lateRefusal("23505", "late")
		forms := w.forms()
		for id, fn := range forms {
			_, err := w.guard.Pipeline(t.Context(), id, func(ctx context.Context, b *pgx.Batch) error {
				b.Queue(`INSERT INTO biz (v) VALUES ('late')`)
				return fn(ctx, b)
			})
			require.ErrorContains(t, err, "23505", mode)
			w.requirePipeline(txidem.Processed, id, fn)
			w.requirePipeline(txidem.Duplicate, id, fn)
		}
		w.requireEffects(len(forms))
	}
}

// A statement that is queued when the pipeline is on its way would be lost.
func TestPipelineWithAStatementQueuedInACallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.guard.Pipeline(t.Context(), "m", func(_ context.Context, b *pgx.Batch) error {
		b.Queue(`SELECT 1`).QueryRow(func(row pgx.Row) error {
			b.Queue(`INSERT INTO biz (v) VALUES ('late')`)
			return row.Scan(new(int))
		})
		return nil
	})
	require.ErrorContains(t, err, "queued when the pipeline had been sent")
	w.requireEffects(0)
}

// A hidden COMMIT and a lost answer: the record is there, but it does not show that all of the statements ran.
func TestPipelineWithAHiddenCommitAndALostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.pool.Config().ConnConfig
	proxy, err := pgproxy.Start(pgconn.NetworkAddress(c.Host, c.Port))
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	pool := w.db.Pool(t, execMode(pgx.QueryExecModeSimpleProtocol), func(c *pgxpool.Config) {
		c.ConnConfig.Host, c.ConnConfig.Port = "127.0.0.1", uint16(proxy.Addr().Port)
		c.ConnConfig.Fallbacks, c.ConnConfig.TLSConfig = nil, nil
	})
	g := newGuard(t, pool, &txidem.Config{Consumer: consumer})
	require.NoError(t, pool.Ping(t.Context()))
	var once sync.Once
	proxy.Observe(func(m pgproxy.Message) (v pgproxy.Verdict) {
		if m.Direction == pgproxy.ToClient {
			once.Do(func() { v = pgproxy.Drop })
		}
		return v
	})
	outcome, err := g.Pipeline(t.Context(), "m", func(_ context.Context, b *pgx.Batch) error {
		b.Queue(`INSERT INTO biz (v) VALUES ('first'); COMMIT`)
		b.Queue(`INSERT INTO biz (v) VALUES ('second')`)
		return nil
	})
	proxy.Observe(nil)
	require.Error(t, err)
	require.Zero(t, outcome)
}

// A text without a statement has no result in the simple protocol: it is left out, or refused when it has a callback.
func TestPipelineWithBlankStatements(t *testing.T) {
	t.Parallel()
	w := newWorld(t, execMode(pgx.QueryExecModeSimpleProtocol))
	var n int
	blanks := func(_ context.Context, b *pgx.Batch) error {
		b.Queue(`-- nothing`)
		b.Queue(`INSERT INTO biz (v) VALUES ('x') RETURNING 1`).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
		for range 3 {
			b.Queue(` ; /* nothing */`)
		}
		return nil
	}
	w.requirePipeline(txidem.Unguarded, "", blanks)
	w.requirePipeline(txidem.Processed, "m", blanks)
	require.Equal(t, 1, n)
	require.Equal(t, 2, w.count(`SELECT count(*) FROM biz`))
	_, err := w.guard.Pipeline(t.Context(), "n", func(_ context.Context, b *pgx.Batch) error {
		b.Queue(`-- nothing`).Exec(func(pgconn.CommandTag) error { return nil })
		return nil
	})
	require.ErrorContains(t, err, "without a statement")
}

// An argument that the server cannot take is the handler's error, and not one of a server that is away.
func TestPipelineWithANulInTheSimpleProtocol(t *testing.T) {
	t.Parallel()
	w := newWorld(t, execMode(pgx.QueryExecModeSimpleProtocol), func(c *txidem.Config) { c.Retry.MaxTime = time.Hour })
	ctx, cancel := context.WithTimeout(t.Context(), stateLimit)
	defer cancel()
	_, err := w.guard.Pipeline(ctx, "m", func(_ context.Context, b *pgx.Batch) error {
		b.Queue(`INSERT INTO biz (v) VALUES ($1)`, "a\x00")
		return nil
	})
	require.Error(t, err)
	require.NoError(t, ctx.Err(), "it was tried again and again")
}
