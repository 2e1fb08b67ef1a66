package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// errRefused is what a pool says that refuses a connection.
var errRefused = errors.New("not now")

// A pool whose PrepareConn refuses one connection: it throws it away and takes another, or fails with or without keeping
// it. It refuses the delivery's first connection, or the one for the second attempt, after a conflict. What fails is
// redelivered.
func TestPoolRefusesAConnection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keep bool
		err  error
	}{{false, nil}, {false, errRefused}, {true, errRefused}} {
		for _, nth := range []int64{1, 2} {
			t.Run(fmt.Sprintf("number %d, keep %v, error %v", nth, c.keep, c.err), func(t *testing.T) {
				t.Parallel()
				var taken atomic.Int64
				w := newWorld(t, conns(1), func(p *pgxpool.Config) {
					p.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) {
						if taken.Add(1) == nth {
							return c.keep, c.err
						}
						return true, nil
					}
				})
				w.deliverUntilAcked(errRefused, w.conflictOnce)
				require.GreaterOrEqual(t, taken.Load(), nth, "a connection was refused")
				w.requireCalls(2)
				w.requireOutcome(txidem.Duplicate, "m", w.ok)
				w.requireCalls(2)
				w.requireEffects(1)
			})
		}
	}
}

// conflictOnce is the ordinary handler, and loses against another transaction the first time it runs.
func (w *world) conflictOnce(ctx context.Context, tx pgx.Tx) error {
	if err := w.ok(ctx, tx); err != nil || w.calls.Load() > 1 {
		return err
	}
	return raise(ctx, tx, "40001")
}

// deliverUntilAcked delivers a message as a broker does, at most twice: a delivery may fail by this error only.
func (w *world) deliverUntilAcked(mayFail error, fn txidem.Handler) {
	w.t.Helper()
	outcome, err := w.guard.Process(w.t.Context(), "m", fn)
	if err != nil {
		require.ErrorIs(w.t, err, mayFail)
		require.True(w.t, txidem.Retryable(err), err)
		require.Zero(w.t, w.count(`SELECT count(*) FROM biz`), "nothing of a failed delivery is stored")
		outcome, err = w.guard.Process(w.t.Context(), "m", fn)
	}
	require.NoError(w.t, err)
	require.Equal(w.t, txidem.Processed, outcome)
}

// A pool whose AfterRelease drops every connection: each delivery has a new one, in every exec mode, and none is left.
func TestPoolDropsEveryConnection(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, conns(1), mode, func(p *pgxpool.Config) {
			p.AfterRelease = func(*pgx.Conn) bool { return false }
		})
		w.useOnce("txidem_messages")
		w.exec(`TRUNCATE txidem_messages, biz`)
		w.requireOutcome(txidem.Processed, "m", w.ok)
		w.requireOutcome(txidem.Duplicate, "m", w.ok)
		w.requireOutcome(txidem.Unguarded, "", func(context.Context, pgx.Tx) error { return nil })
		require.Equal(t, w.pool.Stat().AcquireCount(), w.pool.Stat().NewConnsCount(), "a connection for each use")
		w.requireEffects(1)
		w.waitFor(`SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database()`) // the one that looks
	})
}

// oddSettings are what somebody may have set for a role or a database. Of two for a name only one is in a session.
var oddSettings = []map[string]string{
	{
		"search_path": "shadow, public", "datestyle": "SQL, DMY", "intervalstyle": "sql_standard", "timezone": "Asia/Kathmandu",
		"default_transaction_isolation": "serializable", "default_transaction_deferrable": "on",
		"plan_cache_mode": "force_generic_plan",
	},
	{
		"search_path": "shadow, public", "datestyle": "German", "intervalstyle": "iso_8601", "timezone": "America/St_Johns",
		"default_transaction_isolation": "repeatable read", "lock_timeout": "7s", "idle_in_transaction_session_timeout": "90s",
		"bytea_output": "escape", "extra_float_digits": "0", "array_nulls": "off", "row_security": "off",
	},
	{
		"search_path": "shadow, public", "intervalstyle": "postgres_verbose", "default_transaction_isolation": "read uncommitted",
		"enable_indexscan": "off", "enable_bitmapscan": "off", "lock_timeout": "1", "statement_timeout": "1h",
		"client_min_messages": "debug1",
	},
}

// A session with odd settings: the outcomes are right in every exec mode, the handler sees the settings, and they are as
// before afterwards. A table of the same name that comes first on the search_path is not touched.
func TestSessionWithOddSettings(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		for _, settings := range oddSettings {
			w := newWorld(t, conns(1), mode, func(p *pgxpool.Config) {
				for name, value := range settings {
					p.ConnConfig.RuntimeParams[name] = value
				}
			})
			w.exec(`CREATE SCHEMA shadow`)
			w.exec(`CREATE TABLE shadow.txidem_messages ()`)
			before := w.settings(w.pool, settings)

			w.useOnce("public.txidem_messages")
			w.exec(`TRUNCATE public.txidem_messages, biz`)
			w.requireOutcome(txidem.Processed, "m", func(ctx context.Context, tx pgx.Tx) error {
				inside := w.settings(tx, settings)
				delete(inside, "idle_in_transaction_session_timeout") // which IdleLimit may make stricter
				for name, value := range inside {
					require.Equal(t, before[name], value, name)
				}
				return w.ok(ctx, tx)
			})
			w.requireOutcome(txidem.Duplicate, "m", w.ok)
			require.Equal(t, before, w.settings(w.pool, settings))
			require.Equal(t, 1, w.count(`SELECT count(*) FROM public.txidem_messages WHERE processed_at BETWEEN
				now() - interval '1 hour' AND now()`))
			require.Equal(t, 1, w.count(`SELECT count(*) FROM biz`))
			w.db.Invariant(t)
		}
	})
}

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// settings reads what a session has of the given settings.
func (w *world) settings(q querier, names map[string]string) map[string]string {
	w.t.Helper()
	values := map[string]string{}
	for name := range names {
		var value string
		require.NoError(w.t, q.QueryRow(w.t.Context(), `SELECT current_setting($1::text)`, name).Scan(&value))
		values[strings.ToLower(name)] = value
	}
	return values
}
