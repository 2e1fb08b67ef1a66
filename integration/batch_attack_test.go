package integration

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/pgproxy"
	"github.com/txidem/txidem-go/txidem"
)

// partings are the two ways in which a batch is divided to find the messages that fail.
var partings = map[string][]txidem.BatchOption{"halves": nil, "savepoints": {txidem.WithSavepoints()}}

// withBad makes a handler that inserts all rows, and does something more when the message "bad" is among its own.
func (w *world) withBad(more func(ctx context.Context, tx pgx.Tx) error) func(context.Context, pgx.Tx, []string) error {
	return func(ctx context.Context, tx pgx.Tx, fresh []string) error {
		err := w.insertAll(ctx, tx, fresh)
		if err == nil && slices.Contains(fresh, "bad") {
			err = more(ctx, tx)
		}
		return err
	}
}

// requireOnlyBadFailed asserts that every message but "bad" was processed, with its effect.
func (w *world) requireOnlyBadFailed(msgs []string, results []string) {
	w.t.Helper()
	for i, id := range msgs {
		switch id {
		case "bad":
			require.NotContains(w.t, []string{"processed", "duplicate", "unguarded"}, results[i])
		case "":
			require.Equal(w.t, "unguarded", results[i])
		default:
			require.Equal(w.t, "processed", results[i])
		}
	}
	require.Equal(w.t, len(msgs)-1, w.count(`SELECT count(*) FROM biz`))
	require.Equal(w.t, len(msgs)-2, w.count(`SELECT count(*) FROM txidem_messages`))
	require.Zero(w.t, w.count(`SELECT count(*) FROM txidem_messages WHERE message_id = 'bad'`))
	w.db.Invariant(w.t)
}

// One message fails in a way that hides its error, breaks the connection or leaves something behind in the transaction.
func TestBatchWithOneMessageThatFailsOddly(t *testing.T) {
	t.Parallel()
	msgs := []string{"a", "b", "bad", "", "c"}
	for name, fail := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"hidden": func(ctx context.Context, tx pgx.Tx) error { _ = raise(ctx, tx, "23505"); return nil },
		"hidden in a savepoint": func(ctx context.Context, tx pgx.Tx) error {
			nested, err := tx.Begin(ctx)
			require.NoError(t, err)
			_ = raise(ctx, nested, "23505")
			return nil
		},
		"in a savepoint left open": func(ctx context.Context, tx pgx.Tx) error { _, _ = tx.Begin(ctx); return errPoison },
		"a deadline of its own": func(ctx context.Context, tx pgx.Tx) error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			_, err := tx.Exec(ctx, `SELECT pg_sleep(60)`)
			return err
		},
		"an argument that cannot be encoded": func(ctx context.Context, tx pgx.Tx) error {
			b := &pgx.Batch{}
			b.Queue(`SELECT $1::int`, make(chan int))
			return tx.SendBatch(ctx, b).Close()
		},
		"a role that may not touch the records": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SET LOCAL ROLE pg_monitor`)
			require.NoError(t, err)
			return errPoison
		},
		"read only": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SET TRANSACTION READ ONLY`)
			require.NoError(t, err)
			return errPoison
		},
	} {
		for parting, opts := range partings {
			t.Run(name+"/"+parting, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, conns(1))
				w.requireOnlyBadFailed(msgs, w.deliverBatch(w.withBad(fail), msgs, opts...))
			})
		}
	}
}

// One message is refused by a constraint at COMMIT, when all savepoints are gone.
func TestBatchWithOneMessageThatIsRefusedAtCommit(t *testing.T) {
	t.Parallel()
	msgs := []string{"a", "b", "bad", "", "c"}
	for parting, opts := range partings {
		t.Run(parting, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.lateRefusal("23505", "bad")
			w.requireOnlyBadFailed(msgs, w.deliverBatch(w.insertAll, msgs, opts...))
		})
	}
}

// In batches of one to nine messages: one message fails, at each place, and costs the others nothing; or all of them fail.
func TestBatchPoisonInEveryPosition(t *testing.T) {
	t.Parallel()
	for parting, opts := range partings {
		t.Run(parting, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for size := 1; size <= 9; size++ {
				var msgs, want []string
				for i := range size {
					msgs, want = append(msgs, fmt.Sprintf("%d.%d", size, i)), append(want, fmt.Sprintf("poison: %d.%d", size, i))
				}
				require.Equal(t, want, w.deliverBatch(w.poisoned(msgs...), msgs, opts...))
				for bad := range size {
					got := w.deliverBatch(w.poisoned(msgs[bad]), msgs, opts...)
					for i := range got {
						require.Equal(t, map[bool]string{true: want[bad], false: "processed"}[i == bad], got[i])
					}
					w.requireEffects(size - 1)
					w.exec(`TRUNCATE biz, txidem_messages`)
				}
			}
		})
	}
}

// A hidden COMMIT in a batch is acked for none of its messages.
func TestBatchWithAHiddenCommit(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{
		"SELECT 1; COMMIT", "SELECT 1; COMMIT; BEGIN", "SELECT 1; COMMIT AND CHAIN", "SELECT 1; ROLLBACK; BEGIN",
	} {
		for parting, opts := range partings {
			for _, after := range []error{nil, errPoison} {
				t.Run(fmt.Sprint(sql, "/", parting, "/", after), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					hidden := w.withBad(func(ctx context.Context, tx pgx.Tx) error {
						_, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
						require.NoError(t, err)
						return after
					})
					for _, r := range txidem.WrapBatch(w.guard, itself, hidden, opts...)(t.Context(), []string{"a", "bad"}) {
						if r.Err == nil {
							require.Equal(t, 1, w.count(`SELECT count(*) FROM biz WHERE v = $1`, r.ID), "acked without its effect")
						}
					}
					w.db.Invariant(t)
				})
			}
		}
	}
}

// A handler that does not return half-way through the parts: what was processed by then stays and is told as such.
func TestBatchWhoseHandlerDoesNotReturn(t *testing.T) {
	t.Parallel()
	for how, leave := range howToNotReturn {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, conns(1))
			times := 0
			unwind(func() {
				_ = txidem.WrapBatch(w.guard, itself, w.withBad(func(context.Context, pgx.Tx) error {
					if times++; times == 3 {
						leave()
					}
					return errPoison
				}))(t.Context(), []string{"a", "b", "c", "bad", "d", "d", ""})
			})
			told := map[bool]int{}
			for _, d := range w.told.list() {
				told[d.Err == nil]++
			}
			require.Equal(t, map[bool]int{true: 3, false: 4}, told)
			w.requireEffects(3)
		})
	}
}

// The context ends half-way through the parts: the results say what is stored, no more and no less.
func TestBatchWhoseContextEndsHalfWay(t *testing.T) {
	t.Parallel()
	for parting, opts := range partings {
		for end := 1; end <= 4; end++ {
			t.Run(fmt.Sprint(parting, end), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, conns(1))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				times := 0
				h := w.withBad(func(context.Context, pgx.Tx) error {
					if times++; times == end {
						cancel()
					}
					return errPoison
				})
				for _, r := range txidem.WrapBatch(w.guard, itself, h, opts...)(ctx, []string{"a", "b", "c", "bad", "d", "e"}) {
					stored := w.count(`SELECT count(*) FROM biz WHERE v = $1`, r.ID)
					require.Equal(t, stored == 1, r.Err == nil, "%s: %v", r.ID, r.Err)
				}
				w.requireEffects(w.count(`SELECT count(*) FROM biz`))
			})
		}
	}
}

// Ids that an array literal, a comparison or the simple protocol could take for something else are what they are.
func TestBatchOfOddIDs(t *testing.T) {
	t.Parallel()
	odd := []string{
		"NULL", "null", "{a}", "{", "}", "a,b", `"q"`, `back\slash`, `\`, `\"`, " before", "behind ",
		"\ttab", "line\n", "\vtab", "\ff", "\u00a0x", "\u0085x", "\u2003x",
		"'quoted'", "$1", "$$", "--", "/*", "a;b", "\u00e9", "e\u0301", "\ufeffx", "\x01", "\x7f", "\ufffd", "A", "a",
	}
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, mode)
		for _, want := range []string{"processed", "duplicate"} {
			for i, got := range w.deliverBatch(w.insertAll, odd) {
				require.Equal(t, want, got, "%q", odd[i])
			}
		}
		for _, id := range odd {
			w.requirePipeline(txidem.Duplicate, id, w.queueOne)
			w.requireOutcome(txidem.Duplicate, id, w.ok)
		}
		w.requireEffects(len(odd))
	})
}

// Thousands of messages that are new, duplicates, all of one id, or without one.
func TestBatchOfThousands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 5000
	ids := map[string][]string{"new": make([]string, n), "same": make([]string, n), "without": make([]string, n)}
	for i := range n {
		ids["new"][i], ids["same"][i] = fmt.Sprintf("m%05d", (i*7919)%n), "same"
	}
	for _, c := range []struct {
		ids, first, others string
	}{
		{"new", "processed", "processed"},
		{"new", "duplicate", "duplicate"},
		{"same", "processed", "duplicate"},
		{"without", "unguarded", "unguarded"},
	} {
		for i, got := range w.deliverBatch(w.insertAll, ids[c.ids]) {
			require.Equal(t, map[bool]string{true: c.first, false: c.others}[i == 0], got, c.ids)
		}
	}
	require.Equal(t, n+1+n, w.count(`SELECT count(*) FROM biz`))
	w.requireCalls(3)
	w.db.Invariant(t)
}

// A record without processed_at, and a trigger that keeps rows out, are errors of their messages alone; a pipeline has the
// same errors.
func TestBatchWithLeasesAndRowsKeptOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`INSERT INTO txidem_messages (message_id, consumer) VALUES ('leased', $1)`, consumer)
	w.exec(`CREATE FUNCTION keep_out() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN IF NEW.message_id LIKE ''kept%'' THEN RETURN NULL; END IF; RETURN NEW; END'`)
	w.exec(`CREATE TRIGGER keep_out BEFORE INSERT ON txidem_messages FOR EACH ROW EXECUTE FUNCTION keep_out()`)
	want := map[string]error{"leased": txidem.ErrInFlight, "kept out": txidem.ErrNoRecord}
	for _, r := range txidem.WrapBatch(w.guard, itself, w.insertAll)(t.Context(), []string{"a", "leased", "b", "kept out"}) {
		require.ErrorIs(t, r.Err, want[r.ID], r.ID)
	}
	for id, err := range want {
		require.ErrorIs(t, second(w.guard.Pipeline(t.Context(), id, w.queueOne)), err)
	}
	w.exec(`DELETE FROM txidem_messages WHERE processed_at IS NULL`)
	w.requireEffects(2)
}

// An observer that panics changes no result.
func TestBatchAndPipelineWithAPanickingObserver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *txidem.Config) { c.Observer = func(context.Context, txidem.DeliveryEvent) { panic("observer") } })
	require.Equal(t, []string{"processed", "processed", "duplicate"}, w.deliverBatch(w.insertAll, []string{"a", "b", "a"}))
	w.requirePipeline(txidem.Processed, "c", w.queueOne)
	w.requireEffects(3)
}

// The end of the context is nobody's failure: a message that is not processed because of it must not get the error of
// another, which its consumer may take for permanent.
func TestBatchWhoseContextEndsWhenOneMessageFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	h := w.withBad(func(context.Context, pgx.Tx) error { cancel(); return errPoison })
	for _, r := range txidem.WrapBatch(w.guard, itself, h)(ctx, []string{"a", "bad", "c"}) {
		if r.ID != "bad" {
			require.NotErrorIs(t, r.Err, errPoison, r.ID)
			require.ErrorIs(t, r.Err, context.Canceled, r.ID)
		}
	}
}

// Whatever one message does to its transaction each time, the others are processed.
func TestBatchWithOneMessageThatSpoilsItsTransaction(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"rows open with an error": func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Query(ctx, `SELECT 1`)
			return errPoison
		},
		"rows open": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Query(ctx, `SELECT 1`)
			return err
		},
		"Commit":   func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) },
		"conflict": func(ctx context.Context, tx pgx.Tx) error { return raise(ctx, tx, "40001") },
		"session ended": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
			return err
		},
	} {
		for parting, opts := range partings {
			t.Run(name+"/"+parting, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				msgs := []string{"a", "b", "bad", "", "c"}
				w.requireOnlyBadFailed(msgs, w.deliverBatch(w.withBad(fail), msgs, opts...))
			})
		}
	}
}

// Without a message that can be stored no connection is asked for.
func TestBatchOfIDsThatCannotBeStoredAsksForNoConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conns(1))
	c, err := w.pool.Acquire(t.Context())
	require.NoError(t, err)
	defer c.Release()
	results := txidem.WrapBatch(w.guard, itself, w.insertAll)(t.Context(), []string{"\x00"})
	require.ErrorIs(t, results[0].Err, txidem.ErrInvalidID)
}

// The time of a claim grows with the batch, and is not taken for a wait.
func TestLargeBatchWithAShortWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inFlightWait(time.Millisecond), func(c *txidem.Config) { c.Observer = nil })
	msgs := numbered("message-%06d", 200_000)
	idle := func(context.Context, pgx.Tx, []string) error { return nil }
	results := txidem.WrapBatch(w.guard, itself, idle)(t.Context(), msgs)
	require.NoError(t, results[0].Err)
}

// A part whose time is over is divided too: one of its messages may be what takes it.
func TestBatchThatConflictsUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *txidem.Config) {
		c.Retry = txidem.RetryPolicy{MaxAttempts: 1000, MaxTime: 50 * time.Millisecond}
	})
	msgs := []string{"a", "b", "bad", "", "c"}
	fail := func(ctx context.Context, tx pgx.Tx) error { return raise(ctx, tx, "40001") }
	w.requireOnlyBadFailed(msgs, w.deliverBatch(w.withBad(fail), msgs))
}

// A message without an id is not run again when the outcome of its COMMIT is unknown, also where the handler may have
// committed by itself and a record proves nothing.
func TestBatchWithoutAnIDWhoseCommitIsUnknown(t *testing.T) {
	t.Parallel()
	for name, touch := range map[string]func(pgx.Tx){"plain": func(pgx.Tx) {}, "Conn": func(tx pgx.Tx) { _ = tx.Conn() }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.pool.Config().ConnConfig
			proxy, err := pgproxy.Start(pgconn.NetworkAddress(c.Host, c.Port))
			require.NoError(t, err)
			t.Cleanup(proxy.Close)
			pool := w.db.Pool(t, func(c *pgxpool.Config) {
				c.ConnConfig.Host, c.ConnConfig.Port = "127.0.0.1", uint16(proxy.Addr().Port)
				c.ConnConfig.Fallbacks, c.ConnConfig.TLSConfig = nil, nil
			})
			var armed atomic.Bool
			proxy.Observe(func(m pgproxy.Message) pgproxy.Verdict {
				if m.Direction == pgproxy.ToClient && armed.CompareAndSwap(true, false) {
					return pgproxy.Drop
				}
				return pgproxy.Pass
			})
			h := func(ctx context.Context, tx pgx.Tx, fresh []string) error {
				touch(tx)
				err := w.insertAll(ctx, tx, fresh)
				armed.Store(true)
				return err
			}
			g := newGuard(t, pool, &txidem.Config{Consumer: consumer})
			results := txidem.WrapBatch(g, itself, h)(t.Context(), []string{"a", ""})
			proxy.Observe(nil)
			require.ErrorIs(t, results[1].Err, txidem.ErrCommitUnknown)
			require.Equal(t, name == "Conn", results[0].Err != nil, "%v", results[0].Err)
			w.requireCalls(1)
			require.Equal(t, 2, w.count(`SELECT count(*) FROM biz`))
		})
	}
}
