package integration

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

func (w *world) show(name string, h func(context.Context, pgx.Tx, []string) error, msgs []string, opts ...txidem.Option) []txidem.Result {
	start := time.Now()
	results := txidem.WrapBatch(w.guard, itself, h, opts...)(w.t.Context(), msgs)
	for _, r := range results[:min(len(results), 8)] {
		w.t.Log(name, r.ID, r.Outcome, r.Err)
	}
	w.t.Log(name, "took", time.Since(start), "biz", w.count(`SELECT count(*) FROM biz`), "records", w.count(`SELECT count(*) FROM txidem_messages`), "calls", w.calls.Load())
	return results
}

var bothWays = map[string][]txidem.Option{"halves": nil, "savepoints": {txidem.WithSavepoints()}}

// special makes a handler that does what special does when a message is "bad".
func (w *world) special(fn func(ctx context.Context, tx pgx.Tx) error) func(context.Context, pgx.Tx, []string) error {
	return func(ctx context.Context, tx pgx.Tx, fresh []string) error {
		if err := w.insertAll(ctx, tx, fresh); err != nil {
			return err
		}
		if slices.Contains(fresh, "bad") {
			return fn(ctx, tx)
		}
		return nil
	}
}

func TestYSpecial(t *testing.T) {
	for name, fn := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"conflict":     func(ctx context.Context, tx pgx.Tx) error { return raise(ctx, tx, "40001") },
		"rows open":    func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Query(ctx, `SELECT generate_series(1,1000)`); return err },
		"rows open err": func(ctx context.Context, tx pgx.Tx) error { _, _ = tx.Query(ctx, `SELECT generate_series(1,1000)`); return errPoison },
		"commit":       func(ctx context.Context, tx pgx.Tx) error { _ = tx.Commit(ctx); return nil },
		"rollback err": func(ctx context.Context, tx pgx.Tx) error { _ = tx.Rollback(ctx); return errPoison },
		"hidden":       func(ctx context.Context, tx pgx.Tx) error { _ = raise(ctx, tx, "23505"); return nil },
		"hidden nested": func(ctx context.Context, tx pgx.Tx) error { sp, err := tx.Begin(ctx); if err != nil { return err }; _ = raise(ctx, sp, "23505"); return nil },
		"nested open":  func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Begin(ctx); return err },
		"nested open err":  func(ctx context.Context, tx pgx.Tx) error { tx.Begin(ctx); return errPoison },
		"terminate":    func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`); return err },
		"unencodable":  func(ctx context.Context, tx pgx.Tx) error { b := &pgx.Batch{}; b.Queue(`SELECT $1::int`, make(chan int)); return tx.SendBatch(ctx, b).Close() },
		"own deadline": func(ctx context.Context, tx pgx.Tx) error { ctx, c := context.WithTimeout(ctx, 20*time.Millisecond); defer c(); _, err := tx.Exec(ctx, `SELECT pg_sleep(10)`); return err },
		"hidden commit": func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, `SELECT 1; COMMIT`, pgx.QueryExecModeSimpleProtocol); return err },
		"hidden commit begin": func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, `SELECT 1; COMMIT; BEGIN`, pgx.QueryExecModeSimpleProtocol); return err },
		"set role":     func(ctx context.Context, tx pgx.Tx) error { tx.Exec(ctx, `SET LOCAL ROLE pg_monitor`); return errPoison },
		"set role ok":  func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, `SET LOCAL ROLE pg_monitor`); return err },
	} {
		for way, opts := range bothWays {
			t.Run(name+"/"+way, func(t *testing.T) {
				w := newWorld(t, conns(2))
				w.show(name, w.special(fn), []string{"a", "b", "bad", "c", ""}, opts...)
				w.db.Invariant(t)
			})
		}
	}
}

func TestYDeferred(t *testing.T) {
	for _, state := range []string{"23505", "57014", "U0001"} {
		for way, opts := range bothWays {
			t.Run(state+"/"+way, func(t *testing.T) {
				w := newWorld(t)
				w.exec(`CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.v = ''bad'' THEN RAISE EXCEPTION ''late'' USING ERRCODE = ''` + state + `''; END IF; RETURN NULL; END'`)
				w.exec(`CREATE CONSTRAINT TRIGGER late AFTER INSERT ON biz DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late()`)
				w.show(state, w.insertAll, []string{"a", "b", "bad", "c"}, opts...)
				w.db.Invariant(t)
			})
		}
	}
}

func TestYHuge(t *testing.T) {
	w := newWorld(t, inFlightWait(time.Millisecond))
	msgs := make([]string, 100000)
	for i := range msgs { msgs[i] = fmt.Sprintf("message-%06d", i) }
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w.show("new", w.insertAll, msgs)
	runtime.ReadMemStats(&after)
	t.Log("allocated per message", (after.TotalAlloc-before.TotalAlloc)/uint64(len(msgs)))
	w.show("dup", w.insertAll, msgs)
	same := make([]string, 100000)
	for i := range same { same[i] = "same" }
	w.show("same", w.insertAll, same)
	w.show("empty", w.insertAll, make([]string, 100000))
	many := msgs[:100000]
	_ = many
	w.exec(`TRUNCATE txidem_messages`)
	msgs = make([]string, 400000)
	for i := range msgs { msgs[i] = fmt.Sprintf("message-%06d", i) }
	r := w.show("400k", func(context.Context, pgx.Tx, []string) error { return nil }, msgs)
	_ = r
	w.db.Invariant(t)
}

func TestYOddIDs(t *testing.T) {
	odd := []string{"NULL", "null", "{a}", "a,b", `"q"`, `back\slash`, " lead", "trail ", "\ttab", "nl\n", "\vvt", "vt\v", "\ff", "\u00a0nbsp", "\u0085nel", "'quote'", "$1", "$$", "--", "/*", "a;b", "{", "}", "\\", `\"`, "\u2003em", "é", "e\u0301", "\ufeffbom", "\x01", "\x7f", "�", "A", "a"}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			w := newWorld(t, execMode(mode))
			for _, want := range []string{"processed", "duplicate"} {
				for i, got := range w.deliverBatch(w.insertAll, odd) { require.Equal(t, want, got, "%q", odd[i]) }
			}
			for _, id := range odd { w.requirePipeline(txidem.Duplicate, id, w.queueOne); w.requireOutcome(txidem.Duplicate, id, w.ok) }
			require.Equal(t, len(odd), w.count(`SELECT count(*) FROM txidem_messages WHERE message_id = ANY ($1::text[])`, odd))
			w.requireEffects(len(odd))
		})
	}
}

func TestYEmptyWithoutAPool(t *testing.T) {
	w := newWorld(t, conns(1))
	c, err := w.pool.Acquire(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	start := time.Now()
	r := txidem.WrapBatch(w.guard, itself, w.insertAll)(ctx, []string{"\x00"})
	t.Log(time.Since(start), r)
	start = time.Now()
	r = txidem.WrapBatch(w.guard, itself, w.insertAll)(ctx, nil)
	t.Log(time.Since(start), r)
	c.Release()
}

// holders in turn
func TestYHoldersInTurn(t *testing.T) {
	w := newWorld(t, conns(10), inFlightWait(time.Second))
	ids := []string{"a", "b", "c", "d"}
	var held []*holder
	for _, id := range ids { held = append(held, w.hold(w.guard, id)) }
	done := make(chan []txidem.Result)
	go func() { done <- txidem.WrapBatch(w.guard, itself, w.insertAll)(t.Context(), append(ids, "e", "f")) }()
	for _, h := range held {
		w.waitForLockWaiters(1)
		time.Sleep(700 * time.Millisecond)
		h.end(nil)
	}
	for _, r := range <-done { t.Log(r.ID, r.Outcome, r.Err) }
}

func TestYPanics(t *testing.T) {
	for hname, how := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
		for way, opts := range bothWays {
			t.Run(hname+way, func(t *testing.T) {
				w := newWorld(t, conns(1))
				n := 0
				done := make(chan any, 1)
				go func() {
					defer func() { done <- recover() }()
					txidem.WrapBatch(w.guard, itself, w.special(func(context.Context, pgx.Tx) error { if n++; n > 2 { how() }; return errPoison }), opts...)(t.Context(), []string{"a", "b", "c", "bad", "d", "d", ""})
				}()
				t.Log(<-done)
				for _, d := range w.told.list() { t.Log(d.ID, d.Outcome, d.Err, d.Attempts) }
				t.Log(w.count(`SELECT count(*) FROM biz`))
				w.db.Invariant(t)
			})
		}
	}
}

func TestYContextEnds(t *testing.T) {
	for way, opts := range bothWays {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, conns(1))
			ctx, cancel := context.WithCancel(t.Context())
			n := 0
			h := w.special(func(context.Context, pgx.Tx) error { if n++; n > 2 { cancel() }; return errPoison })
			for _, r := range txidem.WrapBatch(w.guard, itself, h, opts...)(ctx, []string{"a", "b", "c", "bad", "d", "e", "d", ""}) { t.Log(r.ID, r.Outcome, r.Err) }
			t.Log(w.count(`SELECT count(*) FROM biz`))
			w.db.Invariant(t)
		})
	}
}

func TestYAllPoisoned(t *testing.T) {
	for way, opts := range bothWays {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, conns(1))
			var msgs []string
			for i := range 64 { msgs = append(msgs, fmt.Sprint(i)) }
			w.show(way, w.poisoned(msgs...), msgs, opts...)
			w.requireEffects(0)
			for pos := range 9 {
				ids := msgs[:9]
				for i, got := range w.deliverBatch(w.poisoned(ids[pos]), ids, opts...) {
					if i == pos { require.Contains(t, got, "poison") } else { require.Equal(t, "processed", got) }
				}
				w.requireEffects(8)
				w.exec(`TRUNCATE biz, txidem_messages`)
			}
		})
	}
}

func TestYObserver(t *testing.T) {
	w := newWorld(t, func(c *txidem.Config) { c.Observer = func(context.Context, txidem.Delivery) { panic("observer") } })
	require.Equal(t, []string{"processed", "processed"}, w.deliverBatch(w.insertAll, []string{"a", "b"}))
	w.requirePipeline(txidem.Processed, "c", w.queueOne)
}

func TestYLease(t *testing.T) {
	w := newWorld(t)
	w.exec(`INSERT INTO txidem_messages (message_id, consumer) VALUES ('l', $1)`, consumer)
	w.show("lease", w.insertAll, []string{"a", "l", "b", ""})
	_, err := w.guard.Pipeline(t.Context(), "l", w.queueOne)
	require.ErrorIs(t, err, txidem.ErrInFlight)
	w.exec(`CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.message_id LIKE ''x%'' THEN RETURN NULL; END IF; RETURN NEW; END'`)
	w.exec(`CREATE TRIGGER keep BEFORE INSERT ON txidem_messages FOR EACH ROW EXECUTE FUNCTION keep()`)
	w.show("kept out", w.insertAll, []string{"a", "x1", "c", "x2"})
	_, err = w.guard.Pipeline(t.Context(), "x1", w.queueOne)
	require.ErrorIs(t, err, txidem.ErrNoRecord)
	w.db.Invariant(t)
}

var _ = errors.New
var _ *pgxpool.Pool
