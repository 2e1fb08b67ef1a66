package integration

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/pgproxy"
	"github.com/txidem/txidem-go/txidem"
)

var allModes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec,
	pgx.QueryExecModeSimpleProtocol,
}

func inEveryMode(t *testing.T, test func(t *testing.T, mode func(*pgxpool.Config))) {
	for _, mode := range allModes {
		t.Run(strings.ReplaceAll(mode.String(), " ", "_"), func(t *testing.T) { test(t, execMode(mode)) })
	}
}

func TestXNul(t *testing.T) {
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode)
		for name, fn := range map[string]txidem.PipelineHandler{
			"arg": func(_ context.Context, b *pgx.Batch) error { w.calls.Add(1); b.Queue(`INSERT INTO biz (v) VALUES ($1)`, "a\x00b"); return nil },
			"sql": func(_ context.Context, b *pgx.Batch) error { w.calls.Add(1); b.Queue("INSERT INTO biz (v) VALUES ('a') \x00 x"); return nil },
		} {
			start := time.Now()
			o, err := w.guard.Pipeline(t.Context(), name, fn)
			t.Log(name, time.Since(start), o, err, w.calls.Load())
			start = time.Now()
			o, err = w.guard.Process(t.Context(), name, func(ctx context.Context, tx pgx.Tx) error { b := &pgx.Batch{}; fn(ctx, b); return tx.SendBatch(ctx, b).Close() })
			t.Log("   Process", name, time.Since(start), o, err, w.calls.Load())
		}
		w.requireEffects(0)
	})
}

func TestXLateQueue(t *testing.T) {
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode)
		o, err := w.guard.Pipeline(t.Context(), "m", func(_ context.Context, b *pgx.Batch) error {
			b.Queue(`SELECT 1`).QueryRow(func(row pgx.Row) error {
				var n int
				if err := row.Scan(&n); err != nil { return err }
				b.Queue(`INSERT INTO biz (v) VALUES ('late')`)
				return nil
			})
			return nil
		})
		t.Log(o, err, w.count(`SELECT count(*) FROM biz`))
	})
}

func TestXBlank(t *testing.T) {
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode)
		for n := 0; n < 5; n++ {
			for _, id := range []string{"", fmt.Sprint("m", n)} {
				before := w.count(`SELECT count(*) FROM biz`)
				o, err := w.guard.Pipeline(t.Context(), id, func(_ context.Context, b *pgx.Batch) error {
					b.Queue(`INSERT INTO biz (v) VALUES ('x')`)
					for range n { b.Queue(`-- nothing`) }
					return nil
				})
				t.Log(n, id, o, err, w.count(`SELECT count(*) FROM biz`)-before)
			}
		}
		var got int
		o, err := w.guard.Pipeline(t.Context(), "cb", func(_ context.Context, b *pgx.Batch) error {
			b.Queue(`/* blank */`)
			b.Queue(`SELECT 1`).QueryRow(func(row pgx.Row) error { return row.Scan(&got) })
			b.Queue(`SELECT 2`)
			return nil
		})
		t.Log("callback", got, o, err)
		w.db.Invariant(t)
	})
}

func TestXNamedCommit(t *testing.T) {
	for _, mode := range allModes[:4] {
		t.Run(mode.String(), func(t *testing.T) {
			w := newWorld(t, execMode(mode), retries(txidem.RetryPolicy{MaxAttempts: 1}), func(c *pgxpool.Config) {
				c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
					for _, name := range []string{"commit", "rollback"} {
						if _, err := conn.Prepare(ctx, name, `SELECT 1`); err != nil { return err }
					}
					return nil
				}
			})
			for _, id := range []string{"m", "m", ""} {
				o, err := w.guard.Pipeline(t.Context(), id, func(ctx context.Context, b *pgx.Batch) error {
					b.Queue(`SAVEPOINT a`)
					return w.queueOne(ctx, b)
				})
				t.Log(id, o, err, w.count(`SELECT count(*) FROM biz`))
			}
			w.db.Invariant(t)
		})
	}
}

func TestXHiddenCommitAndCut(t *testing.T) {
	w := newWorld(t)
	c := w.pool.Config().ConnConfig
	proxy, err := pgproxy.Start(pgconn.NetworkAddress(c.Host, c.Port))
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	pool := w.db.Pool(t, execMode(pgx.QueryExecModeSimpleProtocol), func(c *pgxpool.Config) {
		c.ConnConfig.Host, c.ConnConfig.Port, c.ConnConfig.Fallbacks = "127.0.0.1", uint16(proxy.Addr().Port), nil
		c.ConnConfig.TLSConfig = nil
	})
	g := newGuard(t, pool, &txidem.Config{Consumer: consumer})
	for name, cb := range map[string]bool{"block": false, "open": true} {
		require.NoError(t, pool.Ping(t.Context()))
		var once sync.Once
		proxy.Observe(func(m pgproxy.Message) (v pgproxy.Verdict) {
			if m.Direction == pgproxy.ToClient { once.Do(func() { v = pgproxy.Drop; w.waitFor(`SELECT count(*) > 0 FROM biz WHERE v = $1`, "first"+name); w.waitFor(`SELECT count(*) = 0 FROM pg_stat_activity WHERE datname=current_database() AND state = 'active' AND pid <> pg_backend_pid()`) }) }
			return v
		})
		o, err := g.Pipeline(t.Context(), name, func(_ context.Context, b *pgx.Batch) error {
			b.Queue(`INSERT INTO biz (v) VALUES ('first` + name + `'); COMMIT`)
			q := b.Queue(`INSERT INTO biz (v) VALUES ('second` + name + `')`)
			if cb { q.Exec(func(pgconn.CommandTag) error { return nil }) }
			return nil
		})
		proxy.Observe(nil)
		t.Log(name, o, err, w.count(`SELECT count(*) FROM biz WHERE v like 'first%'`), w.count(`SELECT count(*) FROM biz WHERE v like 'second%'`))
	}
}

func TestXDeferred(t *testing.T) {
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		for _, state := range []string{"23505", "57014", "U0001"} {
			w := newWorld(t, mode)
			w.exec(`CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''late'' USING ERRCODE = ''` + state + `''; END'`)
			w.exec(`CREATE CONSTRAINT TRIGGER late AFTER INSERT ON biz DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late()`)
			for _, id := range []string{"m", ""} {
				for name, fn := range map[string]txidem.PipelineHandler{
					"bare": w.queueOne,
					"bare2": func(ctx context.Context, b *pgx.Batch) error { b.Queue(`SELECT generate_series(1,3)`); w.queueOne(ctx, b); b.Queue(`SELECT generate_series(1,3)`); return nil },
					"block": func(ctx context.Context, b *pgx.Batch) error { b.Queue(`SAVEPOINT a`); return w.queueOne(ctx, b) },
					"open": func(ctx context.Context, b *pgx.Batch) error {
						w.queueOne(ctx, b)
						b.QueuedQueries[0].Exec(func(pgconn.CommandTag) error { return nil })
						return nil
					},
				} {
					o, err := w.guard.Pipeline(t.Context(), id, fn)
					require.Error(t, err)
					require.Zero(t, o)
					t.Log(state, name, id, err)
					w.requireEffects(0)
				}
			}
		}
	})
}

type boom struct{ how func() }

func (b boom) Value() (driver.Value, error) { b.how(); return "x", nil }
func (b boom) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	b.how()
	return "", nil, nil
}

type boomValue struct{ how func() }

func (b boomValue) Value() (driver.Value, error) { b.how(); return "x", nil }

func TestXPanics(t *testing.T) {
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode, conns(1))
		for hname, how := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
			for name, fn := range map[string]txidem.PipelineHandler{
				"handler": func(ctx context.Context, b *pgx.Batch) error { how(); return nil },
				"exec": func(ctx context.Context, b *pgx.Batch) error {
					w.queueOne(ctx, b)
					b.Queue(`SELECT generate_series(1,100000)`).Exec(func(pgconn.CommandTag) error { how(); return nil })
					b.Queue(`SELECT generate_series(1,100000)`)
					return nil
				},
				"query": func(ctx context.Context, b *pgx.Batch) error {
					w.queueOne(ctx, b)
					b.Queue(`SELECT generate_series(1,100000)`).Query(func(rows pgx.Rows) error { rows.Next(); how(); return nil })
					return nil
				},
				"value":   func(ctx context.Context, b *pgx.Batch) error { w.queueOne(ctx, b); b.Queue(`SELECT $1::text`, boomValue{how}); return nil },
				"rewrite": func(ctx context.Context, b *pgx.Batch) error { w.queueOne(ctx, b); b.Queue(`SELECT 1`, boom{how}); return nil },
			} {
				done := make(chan any, 1)
				go func() {
					defer func() { done <- recover() }()
					w.guard.Pipeline(t.Context(), "m", fn)
				}()
				r := <-done
				t.Log(hname, name, r)
				w.requireEffects(0)
			}
		}
		w.requirePipeline(txidem.Processed, "m", w.queueOne)
		w.requireEffects(1)
	})
}

func TestXCallbacksThatHide(t *testing.T) {
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode, conns(2))
		var rows pgx.Rows
		var row pgx.Row
		for _, hide := range []func(*pgx.QueuedQuery){
			func(q *pgx.QueuedQuery) { q.QueryRow(func(row pgx.Row) error { _ = row.Scan(new(int)); return nil }) },
			func(q *pgx.QueuedQuery) { q.QueryRow(func(r pgx.Row) error { row = r; return nil }) },
			func(q *pgx.QueuedQuery) { q.Query(func(r pgx.Rows) error { rows = r; return nil }) },
			func(q *pgx.QueuedQuery) { q.Query(func(r pgx.Rows) error { for r.Next() {}; return nil }) },
			func(q *pgx.QueuedQuery) { q.Fn = func(br pgx.BatchResults) error { _, _ = br.Exec(); return nil } },
			func(q *pgx.QueuedQuery) { q.Fn = func(br pgx.BatchResults) error { br.QueryRow(); return nil } },
			func(q *pgx.QueuedQuery) { q.Fn = func(br pgx.BatchResults) error { _, _ = br.Query(); return nil } },
		} {
			for i, queue := range []func(b *pgx.Batch){
				func(b *pgx.Batch) { hide(b.Queue(`SELECT 1/(random()::int*0)`)) },
				func(b *pgx.Batch) { hide(b.Queue(`SELECT 1/(random()::int*0)`)); b.Queue(`INSERT INTO biz (v) VALUES ('y')`) },
				func(b *pgx.Batch) { hide(b.Queue(`SELECT 10/(3-n) FROM generate_series(1,100) n`)); b.Queue(`INSERT INTO biz (v) VALUES ('y')`) },
				func(b *pgx.Batch) { hide(b.Queue(`SELECT 10/(3-n) FROM generate_series(1,100) n`)) },
			} {
				o, err := w.guard.Pipeline(t.Context(), "m", func(ctx context.Context, b *pgx.Batch) error { w.queueOne(ctx, b); queue(b); return nil })
				require.Error(t, err, "%d %v", i, o)
				w.requireEffects(0)
			}
			// rows kept, without an error
			id := fmt.Sprintf("%p", hide)
			_, err := w.guard.Pipeline(t.Context(), id, func(ctx context.Context, b *pgx.Batch) error {
				hide(b.Queue(`SELECT generate_series(1,1000)`))
				return w.queueOne(ctx, b)
			})
			t.Log(err)
			if row != nil { _ = row.Scan(new(int)) }
			if rows != nil { rows.Next(); rows.Close() }
			row, rows = nil, nil
			w.exec(`DELETE FROM biz`)
			w.exec(`DELETE FROM txidem_messages`)
		}
		w.requireEffects(0)
	})
}

func TestXStatements(t *testing.T) {
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode, conns(2))
		w.exec(`CREATE PROCEDURE committing() LANGUAGE plpgsql AS 'BEGIN INSERT INTO biz (v) VALUES (''x''); COMMIT; END'`)
		for _, sql := range []string{`VACUUM biz`, `CREATE INDEX CONCURRENTLY i ON biz (v)`, `CALL committing()`, `DO $$BEGIN COMMIT; END$$`, `DISCARD ALL`,
			`SET LOCAL lock_timeout = '1s'`, `LISTEN x`, `COPY biz TO STDOUT`, `SET TRANSACTION READ ONLY`, `RESET ALL`, `(SELECT 1)`, `CREATE TABLE made (n int)`, `LOCK TABLE biz`, `EXPLAIN ANALYZE SELECT 1`,
			`DECLARE c CURSOR FOR SELECT 1`, `SELECT pg_notify('x','y')`, `NOTIFY x`} {
			for _, pos := range []int{0, 1} {
				id := sql + fmt.Sprint(pos)
				before := w.count(`SELECT count(*) FROM biz`) - w.count(`SELECT count(*) FROM txidem_messages`)
				o, err := w.guard.Pipeline(t.Context(), id, func(ctx context.Context, b *pgx.Batch) error {
					if pos == 1 { w.queueOne(ctx, b) }
					b.Queue(sql)
					if pos == 0 { w.queueOne(ctx, b) }
					return nil
				})
				t.Log(sql, pos, o, err)
				require.Equal(t, before, w.count(`SELECT count(*) FROM biz`)-w.count(`SELECT count(*) FROM txidem_messages`), sql)
				w.exec(`DROP TABLE IF EXISTS made`)
			}
		}
		w.db.Invariant(t)
	})
}

func TestXDeadPoolPipeline(t *testing.T) {
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		const n = 8
		w := newWorld(t, mode, conns(n), func(c *pgxpool.Config) { c.MinConns = n }, retries(txidem.RetryPolicy{MaxAttempts: 1}))
		for i := range 6 {
			w.fillPool()
			w.terminateOthers()
			id := fmt.Sprint("m", i/2)
			if i > 3 { id = "" }
			o, err := w.guard.Pipeline(t.Context(), id, w.queueOne)
			t.Log(id, o, err)
		}
		w.db.Invariant(t)
	})
}

func TestXLockTimeout(t *testing.T) {
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode, conns(1))
		w.exec(`SET lock_timeout = '7s'`)
		w.requirePipeline(txidem.Processed, "bare", func(_ context.Context, b *pgx.Batch) error { b.Queue(`INSERT INTO biz (v) SELECT current_setting('lock_timeout')`); return nil })
		w.requirePipeline(txidem.Processed, "block", func(_ context.Context, b *pgx.Batch) error { b.Queue(`SAVEPOINT a`); b.Queue(`INSERT INTO biz (v) SELECT current_setting('lock_timeout')`); return nil })
		w.requirePipeline(txidem.Duplicate, "block", w.queueOne)
		require.Equal(t, 2, w.count(`SELECT count(*) FROM biz WHERE v = '7s'`))
		require.Equal(t, "7s", w.setting("lock_timeout"))
		require.Equal(t, "", w.setting("txidem.lock_timeout"))
	})
}

func TestXStale(t *testing.T) {
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode, conns(1))
		other := w.db.Pool(t, execMode(pgx.QueryExecModeExec))
		for i, ddl := range []string{
			`SELECT 1`,
			`ALTER TABLE txidem_messages ADD COLUMN note text`,
			`ALTER TABLE txidem_messages ALTER COLUMN processed_at TYPE timestamptz(3)`,
			`ALTER TABLE txidem_messages ALTER COLUMN message_id TYPE varchar(2000) COLLATE "C"`,
			`ALTER TABLE txidem_messages ALTER COLUMN message_id TYPE text COLLATE "C"`,
		} {
			_, err := other.Exec(t.Context(), ddl)
			require.NoError(t, err)
			id := fmt.Sprintf("m%d", i)
			w.requirePipeline(txidem.Processed, id, w.queueOne)
			w.requirePipeline(txidem.Duplicate, id, w.queueOne)
		}
		c, err := w.pool.Acquire(t.Context())
		require.NoError(t, err)
		_, err = c.Conn().PgConn().Exec(t.Context(), `DISCARD ALL`).ReadAll()
		require.NoError(t, err)
		c.Release()
		w.requirePipeline(txidem.Processed, "z", w.queueOne)
		w.requirePipeline(txidem.Duplicate, "z", w.queueOne)
		c, err = w.pool.Acquire(t.Context())
		require.NoError(t, err)
		_, err = c.Conn().PgConn().Exec(t.Context(), `DISCARD ALL`).ReadAll()
		require.NoError(t, err)
		c.Release()
		w.requirePipeline(txidem.Duplicate, "z", w.queueOne)
		w.requireEffects(6)
	})
}

var _ = errors.New
