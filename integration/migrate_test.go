package integration

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/pgproxy"
	"github.com/txidem/txidem-go/integration/testdb"
	"github.com/txidem/txidem-go/migrations"
	"github.com/txidem/txidem-go/txidem"
)

func newestVersion(t *testing.T) int {
	t.Helper()
	steps, err := migrations.SQL(nil)
	require.NoError(t, err)
	return len(steps)
}

// advisoryLocks counts the advisory locks in the test's database.
func (w *world) advisoryLocks() int {
	w.t.Helper()
	return w.count(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
}

// stuckMigration is an Apply that has the migration lock and waits inside its first step.
type stuckMigration struct {
	blocker pgx.Tx // has made a table of the same name and not committed
	done    chan struct{}
	report  migrations.Report
	err     error
}

func (w *world) stickMigration(cfg *migrations.Config) *stuckMigration {
	w.t.Helper()
	blocker, err := w.pool.Begin(w.t.Context())
	require.NoError(w.t, err)
	_, err = blocker.Exec(w.t.Context(), `CREATE TABLE `+pgx.Identifier{cfg.Schema, cfg.Table}.Sanitize()+` (n int)`)
	require.NoError(w.t, err)
	s := &stuckMigration{blocker: blocker, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.report, s.err = migrations.Apply(context.WithoutCancel(w.t.Context()), w.pool, cfg)
	}()
	w.t.Cleanup(func() { <-s.done })
	w.t.Cleanup(func() { _ = blocker.Rollback(context.WithoutCancel(w.t.Context())) }) // when the test has failed before
	w.waitForLockWaiters(1)
	return s
}

// end takes away what the migration waits for, and asserts that it then does its work.
func (s *stuckMigration) end(t *testing.T) {
	t.Helper()
	require.NoError(t, s.blocker.Rollback(t.Context()))
	<-s.done
	require.NoError(t, s.err)
	require.NotEmpty(t, s.report.Applied)
}

// Migrations of other schemas and tables do not wait for one that holds its lock.
func TestMigrationsOfOtherNamesDoNotWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conns(6))
	w.exec(`CREATE SCHEMA a`)
	w.exec(`CREATE SCHEMA b`)
	stuck := w.stickMigration(&migrations.Config{Schema: "a", Table: "messages"})
	for _, cfg := range []*migrations.Config{{Schema: "b", Table: "messages"}, {Schema: "a", Table: "others"}} {
		report, err := migrations.Apply(t.Context(), w.pool, cfg)
		require.NoError(t, err)
		require.NotEmpty(t, report.Applied)
	}
	select {
	case <-stuck.done:
		require.FailNow(t, "the first migration did not stay behind", "%v", stuck.err)
	default:
	}
	stuck.end(t)
}

// Behind a lock that somebody else holds, Apply ends with its context or its LockTimeout, and leaves
// nothing behind.
func TestMigrationBehindALock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conns(6))
	stuck := w.stickMigration(&migrations.Config{Schema: "public", Table: "messages", LockTimeout: time.Hour})

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := migrations.Apply(ctx, w.pool, &migrations.Config{Table: "messages", LockTimeout: time.Hour})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, t.Context().Err())

	_, err = migrations.Apply(t.Context(), w.pool, &migrations.Config{Table: "messages", LockTimeout: 50 * time.Millisecond})
	requireState(t, "55P03", err)
	require.ErrorContains(t, err, "the migration lock")
	require.ErrorContains(t, err, "held its lock for 50ms")

	stuck.end(t)
	report, err := migrations.Apply(t.Context(), w.pool, &migrations.Config{Table: "messages"})
	require.NoError(t, err)
	require.Empty(t, report.Applied)
	require.Zero(t, w.advisoryLocks())
	w.db.Invariant(t)
}

// The LockTimeout bounds the wait of a step as well.
func TestMigrationStepBehindALock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := &migrations.Config{LockTimeout: 50 * time.Millisecond}
	holder, err := w.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = holder.Exec(t.Context(), `LOCK TABLE txidem_messages IN ACCESS SHARE MODE`)
	require.NoError(t, err)
	_, err = migrations.Down(t.Context(), w.pool, cfg)
	requireState(t, "55P03", err)
	require.ErrorContains(t, err, fmt.Sprintf("step %04d_", newestVersion(t)))
	require.NoError(t, holder.Rollback(t.Context()))
	_, err = migrations.Down(t.Context(), w.pool, cfg)
	require.NoError(t, err)
	require.Zero(t, w.advisoryLocks())
}

func requireState(t *testing.T, state string, err error) {
	t.Helper()
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	require.Equal(t, state, pgErr.Code, "%v", err)
}

// A step that fails leaves no lock and no version, and the next run works.
func TestFailingStep(t *testing.T) {
	t.Parallel()
	for kind, create := range map[string]string{
		"table": `CREATE TABLE messages (n int)`,
		"view":  `CREATE VIEW messages AS SELECT 1 AS n`,
		"index": `CREATE INDEX messages ON biz (v)`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			cfg := &migrations.Config{Table: "messages"}
			w.exec(create)
			_, err := migrations.Apply(t.Context(), w.pool, cfg)
			requireState(t, "42P07", err)
			require.ErrorContains(t, err, `table "messages" exists in schema "public" and was not made by this package`)
			require.Zero(t, w.advisoryLocks())
			require.Zero(t, w.count(`SELECT count(*) FROM pg_class WHERE relname = 'messages_migrations'`), "nothing is half done")

			w.exec(`DROP ` + kind + ` messages`)
			report, err := migrations.Apply(t.Context(), w.pool, cfg)
			require.NoError(t, err)
			require.Len(t, report.Applied, newestVersion(t))
			w.db.Invariant(t)
		})
	}
}

// A guard works on every version of the schema, and one that is at work goes on while the schema changes under its pooled
// connections and their prepared statements.
func TestGuardWorksOnEveryVersion(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode func(*pgxpool.Config)) {
		w := newWorld(t, conns(1), mode)
		steps := renderSteps(t, "txidem_messages")
		require.Greater(t, len(steps), 1)
		for v := len(steps); v >= 1; v-- {
			w.useOnce("txidem_messages")
			w.exec(`TRUNCATE txidem_messages`)
			report, err := migrations.Down(t.Context(), w.pool, nil)
			require.NoError(t, err)
			require.Equal(t, v-1, report.To)
		}
		for _, m := range steps {
			w.exec(m.Up)
			w.useOnce("txidem_messages")
			w.exec(`TRUNCATE txidem_messages`)
		}
		w.db.Invariant(t)
	})
}

const (
	checksOf    = `SELECT count(*) FROM pg_constraint WHERE contype = 'c' AND conrelid = $1::regclass`
	notVerified = ` AND NOT convalidated`
)

// The checks on the lengths are gone from version 2 on, whatever the table is called. The way back brings them back for new
// rows, without a look at those that are there, and up again takes them away again.
func TestLengthChecksGoAndComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range append([]string{"txidem_messages"}, oddNames...) {
		cfg := &migrations.Config{Table: name}
		_, err := migrations.Apply(t.Context(), w.pool, cfg)
		require.NoError(t, err, name)
		table := pgx.Identifier{"public", name}.Sanitize()
		long := strings.Repeat("x", 1025)
		w.exec(`INSERT INTO `+table+` (message_id, consumer) VALUES ($1, '')`, long)

		w.downTo(1, cfg)
		require.Equal(t, 2, w.count(checksOf+notVerified, table), name)
		for _, key := range [][2]string{{long + "x", "c"}, {"m", long}, {"", "c"}, {"m", ""}} {
			_, err = w.pool.Exec(t.Context(), `INSERT INTO `+table+` (message_id, consumer) VALUES ($1, $2)`, key[0], key[1])
			requireState(t, "23514", err)
		}
		_, err = migrations.Apply(t.Context(), w.pool, cfg)
		require.NoError(t, err, name)
		require.Zero(t, w.count(checksOf, table), name)
	}
	w.db.Invariant(t)
}

// downTo takes steps back until the schema has that version.
func (w *world) downTo(version int, cfg *migrations.Config) {
	w.t.Helper()
	for v := newestVersion(w.t); v > version; v-- {
		report, err := migrations.Down(w.t.Context(), w.pool, cfg)
		require.NoError(w.t, err)
		require.Equal(w.t, v-1, report.To)
	}
}

// Somebody has dropped one of the checks by hand: the step that drops both takes no offence.
func TestLengthCheckDroppedByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.downTo(1, nil)
	w.exec(`ALTER TABLE txidem_messages DROP CONSTRAINT txidem_consumer_length`)
	_, err := migrations.Apply(t.Context(), w.pool, nil)
	require.NoError(t, err)
	require.Zero(t, w.count(checksOf, "txidem_messages"))
}

// A step that changes the table waits for a message in a handler, no longer than LockTimeout, and then leaves the schema as
// it was. The handler goes on, and so does the step once that has ended.
func TestMigrationBehindAHandler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.downTo(1, nil)
	h := w.hold(w.guard, "m")
	report, err := migrations.Apply(t.Context(), w.pool, &migrations.Config{LockTimeout: 50 * time.Millisecond})
	requireState(t, "55P03", err)
	require.ErrorContains(t, err, "migrations: step 0002_no_length_checks: ")
	require.Equal(t, migrations.Report{From: 1, To: 1}, report)

	done := make(chan error, 1)
	go func() {
		_, err := migrations.Apply(context.WithoutCancel(t.Context()), w.pool, nil)
		done <- err
	}()
	w.waitForLockWaiters(1)
	report, err = migrations.Apply(t.Context(), w.pool, &migrations.Config{LockTimeout: 50 * time.Millisecond})
	requireState(t, "55P03", err)
	require.ErrorContains(t, err, "migrations: the migration lock: ")
	require.Equal(t, migrations.Report{From: 1, To: 1}, report)
	h.end(nil)
	require.NoError(t, h.err)
	require.NoError(t, <-done)
	w.requireOutcome(txidem.Duplicate, "m", w.ok)
	w.requireEffects(1)
}

// The connection breaks while COMMIT is under way, before the server has it or after. The Report does not say that the
// schema was migrated, the error says how to find out, and calling Apply again brings it up.
func TestMigrationWhoseCommitIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		direction pgproxy.Direction
		committed int
	}{"request": {pgproxy.ToServer, 0}, "answer": {pgproxy.ToClient, newestVersion(t)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			cfg := &migrations.Config{Table: "messages"}
			report, err := migrations.Apply(t.Context(), w.poolThatLosesCommit(c.direction), cfg)
			require.ErrorContains(t, err, "migrations: COMMIT (Status says whether it was done): ")
			require.Equal(t, migrations.Report{}, report)

			state, err := migrations.Status(t.Context(), w.pool, cfg)
			require.NoError(t, err)
			require.Equal(t, c.committed, state.Current)
			report, err = migrations.Apply(t.Context(), w.pool, cfg)
			require.NoError(t, err)
			require.Equal(t, newestVersion(t), report.To)
			require.Equal(t, newestVersion(t)-c.committed, len(report.Applied))
			w.db.Invariant(t)
		})
	}
}

// poolThatLosesCommit makes a pool whose connection breaks at the COMMIT of a transaction that writes: at the request, or at
// the answer to it.
func (w *world) poolThatLosesCommit(where pgproxy.Direction) *pgxpool.Pool {
	w.t.Helper()
	config, err := pgx.ParseConfig(w.db.DSN())
	require.NoError(w.t, err)
	proxy, err := pgproxy.Start(pgconn.NetworkAddress(config.Host, config.Port))
	require.NoError(w.t, err)
	w.t.Cleanup(proxy.Close)
	var armed atomic.Bool
	proxy.Observe(func(m pgproxy.Message) pgproxy.Verdict {
		if m.Direction == where && armed.CompareAndSwap(true, false) {
			return pgproxy.Drop
		}
		return pgproxy.Pass
	})
	return w.db.Pool(w.t, conns(1), func(c *pgxpool.Config) {
		c.ConnConfig.Host, c.ConnConfig.Port = proxy.Addr().IP.String(), uint16(proxy.Addr().Port)
		c.ConnConfig.TLSConfig, c.ConnConfig.Fallbacks = nil, nil
		c.ConnConfig.Tracer = &commitWatcher{armed: &armed}
	})
}

// commitWatcher sees the COMMIT that ends a migration before it is sent: the one after the step was booked.
type commitWatcher struct {
	errorTracer
	booked bool
	armed  *atomic.Bool
}

func (c *commitWatcher) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	c.booked = c.booked || strings.HasPrefix(data.SQL, "INSERT INTO")
	if c.booked && data.SQL == "commit" {
		c.armed.Store(true)
	}
	return ctx
}

// Where serializable and deferrable are a role's defaults, a transaction that only reads would wait for whoever writes:
// Apply, Status and Check do not.
func TestLooksDoNotWaitForWriters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	writer, err := w.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.Serializable})
	require.NoError(t, err)
	_, err = writer.Exec(t.Context(), `INSERT INTO biz (v) VALUES ('open')`)
	require.NoError(t, err)
	pool := w.db.Pool(t, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
		c.ConnConfig.RuntimeParams["default_transaction_deferrable"] = "on"
	})
	ctx, cancel := context.WithTimeout(t.Context(), stateLimit)
	defer cancel()
	_, err = migrations.Apply(ctx, pool, nil)
	require.NoError(t, err)
	_, err = migrations.Status(ctx, pool, nil)
	require.NoError(t, err)
	require.NoError(t, newGuard(t, pool, &txidem.Config{Consumer: consumer}).Check(ctx))
	require.NoError(t, writer.Rollback(t.Context()))
}

// Every error is one line that begins with the package's name, also where pgx has a line for each address that it tried.
func TestMigrationErrorsAreOneLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`DROP TABLE txidem_messages`)
	w.exec(`CREATE TABLE taken (n int)`)
	w.exec(`CREATE TABLE gone_migrations (version int, name text)`)
	w.exec(`INSERT INTO gone_migrations VALUES (1, 'messages')`)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		db   migrations.DB
		cfg  *migrations.Config
		want string
	}{
		"no server":    {t.Context(), unreachable(t), nil, "a read-only transaction: "},
		"ended":        {ended, w.pool, nil, "context canceled"},
		"no schema":    {t.Context(), w.pool, &migrations.Config{Schema: "nowhere"}, "create it first"},
		"taken":        {t.Context(), w.pool, &migrations.Config{Table: "taken"}, "was not made by this package"},
		"table gone":   {t.Context(), w.pool, &migrations.Config{Table: "gone"}, "was migrated before and is gone"},
		"refused name": {t.Context(), w.pool, &migrations.Config{Schema: "a\nb"}, "control character"},
	} {
		_, err := migrations.Apply(c.ctx, c.db, c.cfg)
		require.ErrorContains(t, err, c.want, name)
		require.True(t, strings.HasPrefix(err.Error(), "migrations: "), "%s: %v", name, err)
		require.Equal(t, 1, strings.Count(err.Error(), "migrations: "), "%s: %v", name, err)
		require.NotContains(t, err.Error(), "\n", name)
	}
}

// unreachable makes a pool on two addresses at which nobody listens.
func unreachable(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), "host=127.0.0.1,127.0.0.1 port=1,2 user=nobody dbname=nothing sslmode=disable")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// What is missing is said with the next step.
func TestMigrationHints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := migrations.Apply(t.Context(), w.pool, &migrations.Config{Schema: "nowhere"})
	requireState(t, "3F000", err)
	require.ErrorContains(t, err, `schema "nowhere" does not exist: create it first`)

	w.exec(`CREATE SCHEMA closed`)
	pool := w.db.Pool(t, w.role("visitor", `GRANT USAGE ON SCHEMA closed TO {role}`))
	_, err = migrations.Apply(t.Context(), pool, &migrations.Config{Schema: "closed"})
	requireState(t, "42501", err)
	require.ErrorContains(t, err, `the role needs USAGE and CREATE on schema "closed", `+
		`and must own table "txidem_messages" to change it`)
}

// A role that owns the table and may write the versions can take the step back: nothing is made that is there already.
func TestDownNeedsNoRightToCreate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.migrateOwn()
	cfg := &migrations.Config{Schema: "own"}
	pool := w.db.Pool(t, w.role("owner", `GRANT USAGE ON SCHEMA own TO {role}`,
		`ALTER TABLE own.txidem_messages OWNER TO {role}`,
		`GRANT SELECT, INSERT, DELETE ON own.txidem_messages_migrations TO {role}`))
	for range newestVersion(t) {
		report, err := migrations.Down(t.Context(), pool, cfg)
		require.NoError(t, err)
		require.NotEmpty(t, report.Applied)
	}
	_, err := migrations.Apply(t.Context(), pool, cfg)
	requireState(t, "42501", err)
	require.ErrorContains(t, err, "step 0001")
}

// statements collects the SQL of what a pool sends, batches included.
type statements struct {
	errorTracer
	sent []string
}

func (s *statements) install(c *pgxpool.Config) { c.ConnConfig.Tracer = s }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.note(data.SQL)
	return ctx
}

func (s *statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	s.note(data.SQL)
}

func (s *statements) note(sql string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, sql)
}

func (s *statements) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.sent...)
}

// When there is nothing to do, Apply and Status only read: a role that may read the versions and no more is enough, the
// server keeps the transaction read only, and neither a locked table nor a locked version table holds them up.
func TestUpToDateOnlyReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`CREATE SCHEMA own`)
	cfg := &migrations.Config{Schema: "own", LockTimeout: time.Millisecond}
	_, err := migrations.Apply(t.Context(), w.pool, cfg)
	require.NoError(t, err)

	holder, err := w.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = holder.Exec(t.Context(), `LOCK TABLE own.txidem_messages IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	_, err = holder.Exec(t.Context(), `LOCK TABLE own.txidem_messages_migrations IN EXCLUSIVE MODE`)
	require.NoError(t, err)

	var sent statements
	pool := w.db.Pool(t, sent.install, w.role("reader", `GRANT USAGE ON SCHEMA own TO {role}`,
		`GRANT SELECT ON own.txidem_messages_migrations TO {role}`))
	report, err := migrations.Apply(t.Context(), pool, cfg)
	require.NoError(t, err)
	require.Empty(t, report.Applied)
	state, err := migrations.Status(t.Context(), pool, cfg)
	require.NoError(t, err)
	require.Empty(t, state.Pending)
	requireReadOnly(t, sent.list())

	require.NoError(t, holder.Rollback(t.Context()))
	_, err = migrations.Down(t.Context(), pool, cfg)
	requireState(t, "42501", err) // so the role really could not have done more
}

// requireReadOnly asserts that every statement reads, inside a transaction that the server keeps read only.
func requireReadOnly(t *testing.T, sent []string) {
	t.Helper()
	require.NotEmpty(t, sent)
	inside := false
	for _, sql := range sent {
		switch text := strings.ToLower(strings.TrimSpace(sql)); text {
		case "begin isolation level read committed read only":
			inside = true
		case "commit":
			inside = false
		default:
			require.True(t, inside && strings.HasPrefix(text, "select"), sql)
			require.NotContains(t, text, "_lock", sql)
		}
	}
}

// Status, Apply and Down report what is there and what they did; all of it over a pool of one connection, and in every
// exec mode.
func TestMigrateUpAndDown(t *testing.T) {
	t.Parallel()
	for _, mode := range execModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, conns(1), execMode(mode))
			m := migrator{world: w, cfg: &migrations.Config{Table: "messages"}, steps: renderSteps(t, "messages")}
			m.requireState(0)
			m.requireDown(0, 0) // nothing there: nothing to take back, and nothing is made
			require.Zero(t, w.count(`SELECT count(*) FROM pg_class WHERE relname LIKE 'messages%'`))
			for range 2 {
				m.requireApply(0, len(m.steps))
				m.requireApply(len(m.steps), len(m.steps))
				for v := len(m.steps); v > 0; v-- {
					m.requireDown(v, v-1)
				}
				m.requireDown(0, 0)
				require.Zero(t, w.count(`SELECT count(*) FROM pg_class WHERE relname = 'messages'`))
			}
			require.Equal(t, 1, w.count(`SELECT count(*) FROM pg_class WHERE relname = 'txidem_messages'`), "others stay")
			require.Zero(t, w.advisoryLocks())
			w.db.Invariant(t)
		})
	}
}

func renderSteps(t *testing.T, table string) []migrations.Migration {
	t.Helper()
	steps, err := migrations.SQL(&migrations.Config{Table: table})
	require.NoError(t, err)
	return steps
}

// migrator asserts the results of package migrations for one table.
type migrator struct {
	*world
	cfg   *migrations.Config
	steps []migrations.Migration
}

func (m migrator) requireState(current int) {
	m.t.Helper()
	state, err := migrations.Status(m.t.Context(), m.pool, m.cfg)
	require.NoError(m.t, err)
	require.Equal(m.t, current, state.Current)
	require.Equal(m.t, len(m.steps), state.Newest)
	require.Equal(m.t, len(m.steps)-current, len(state.Pending))
	if current < len(m.steps) {
		require.Equal(m.t, m.steps[current:], state.Pending)
		want := fmt.Sprintf("version %d of %d: %d to apply", current, state.Newest, len(state.Pending))
		require.Contains(m.t, state.String(), want)
	} else {
		require.Contains(m.t, state.String(), "up to date")
	}
}

func (m migrator) requireApply(from, to int) {
	m.t.Helper()
	report, err := migrations.Apply(m.t.Context(), m.pool, m.cfg)
	require.NoError(m.t, err)
	m.requireReport(report, from, to)
	require.Len(m.t, report.Applied, to-from)
	m.requireState(to)
}

func (m migrator) requireDown(from, to int) {
	m.t.Helper()
	report, err := migrations.Down(m.t.Context(), m.pool, m.cfg)
	require.NoError(m.t, err)
	m.requireReport(report, from, to)
	require.Len(m.t, report.Applied, from-to)
	m.requireState(to)
}

func (m migrator) requireReport(report migrations.Report, from, to int) {
	m.t.Helper()
	require.Equal(m.t, from, report.From)
	require.Equal(m.t, to, report.To)
	if from == to {
		require.Contains(m.t, report.String(), fmt.Sprintf("version %d: nothing to do", to))
	} else {
		require.Contains(m.t, report.String(), fmt.Sprintf("from version %d to %d", from, to))
	}
}

// A schema that a newer build made is left as it is, so that a replica of the older build can start beside it.
func TestSchemaNewerThanThisBuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	future := newestVersion(t) + 1
	w.exec(`INSERT INTO txidem_messages_migrations (version, name) VALUES ($1, 'future')`, future)
	w.requireOutcome(txidem.Processed, "m", w.ok)

	report, err := migrations.Apply(t.Context(), w.pool, nil)
	require.NoError(t, err)
	require.Equal(t, migrations.Report{From: future, To: future}, report)

	state, err := migrations.Status(t.Context(), w.pool, nil)
	require.NoError(t, err)
	require.Equal(t, migrations.State{Current: future, Newest: future - 1}, state)
	require.Contains(t, state.String(), "newer than")

	report, err = migrations.Down(t.Context(), w.pool, nil)
	require.ErrorContains(t, err, fmt.Sprintf("version %d and this build knows only %d", future, future-1))
	require.Equal(t, future, report.To)
	require.Equal(t, future, w.count(`SELECT max(version) FROM txidem_messages_migrations`))
	w.requireOutcome(txidem.Duplicate, "m", w.ok)
	w.requireEffects(1)
}

// People who keep their schema in a tool of their own run the SQL text: the guard works on what it makes, and Apply says
// that the table is not its own.
func TestSchemaMadeByAnotherTool(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(ctx context.Context, conn *pgx.Conn, sql string) error{
		"plain": func(ctx context.Context, conn *pgx.Conn, sql string) error {
			return conn.PgConn().Exec(ctx, sql).Close()
		},
		"in a transaction": func(ctx context.Context, conn *pgx.Conn, sql string) error {
			return conn.PgConn().Exec(ctx, "BEGIN;\n"+sql+"\nCOMMIT").Close()
		},
		"psql": psql,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("psql"); name == "psql" && err != nil {
				t.Skipf("no psql on the PATH: install PostgreSQL's client: %v", err)
			}
			w := newWorld(t, func(c *txidem.Config) { c.Table = "messages" })
			conn, err := pgx.Connect(t.Context(), w.db.DSN())
			require.NoError(t, err)
			defer conn.Close(context.WithoutCancel(t.Context()))
			steps := renderSteps(t, "messages")
			for _, m := range steps {
				require.NoError(t, run(t.Context(), conn, m.Up))
			}
			w.useOnce("messages")

			_, err = migrations.Apply(t.Context(), w.pool, &migrations.Config{Table: "messages"})
			require.ErrorContains(t, err, "was not made by this package: keep the tool that made it")
			w.requireOutcome(txidem.Duplicate, "kept", w.ok)

			for i := range steps {
				require.NoError(t, run(t.Context(), conn, steps[len(steps)-1-i].Down))
			}
			require.Zero(t, w.count(`SELECT count(*) FROM pg_class WHERE relname = 'messages'`))
			w.db.Invariant(t)
		})
	}
}

// psql runs the text as a file, as the documentation says.
func psql(ctx context.Context, conn *pgx.Conn, sql string) error {
	cmd := exec.CommandContext(ctx, "psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-f", "-", conn.Config().ConnString())
	cmd.Stdin = strings.NewReader(sql)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("psql: %w: %s", err, out)
	}
	return nil
}

// useOnce goes through every verb of the guard on a table with nothing in it, and leaves the message "kept" in it.
func (w *world) useOnce(table string) {
	w.t.Helper()
	require.NoError(w.t, w.guard.Check(w.t.Context()))
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireOutcome(txidem.Duplicate, "m", w.ok)
	require.NoError(w.t, w.guard.Forget(w.t.Context(), "m"))
	w.requireSeen(false, "m")
	require.NoError(w.t, w.guard.Remember(w.t.Context(), "m"))
	w.requireSeen(true, "m")
	require.NoError(w.t, w.guard.Forget(w.t.Context(), "m"))
	require.NoError(w.t, pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		outcome, err := w.guard.ClaimTx(w.t.Context(), tx, "kept")
		require.Equal(w.t, txidem.Claimed, outcome)
		return err
	}))
	require.Equal(w.t, 1, w.count(`SELECT count(*) FROM `+table))
}

func (w *world) requireSeen(want bool, id string) {
	w.t.Helper()
	seen, err := w.guard.Seen(w.t.Context(), id)
	require.NoError(w.t, err)
	require.Equal(w.t, want, seen, "%q", id)
}

// oddNames are names that PostgreSQL stores verbatim when they are quoted, and that break whatever quotes badly.
var oddNames = []string{
	"CamelCase", `with "quotes"`, "with space", "select", `x"; DROP TABLE biz; --`, "it's", "таблица", "a.b", "a$1b",
	"%I %s", "{table}", "{versions}", `back\slash`, `"public"."txidem_messages"`, "/* c", strings.Repeat("n", 52),
}

// Every odd name works as a schema and as a table, also where pgx writes the arguments into the statement, and nothing
// beside it is touched.
func TestOddNames(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, execMode(mode))
			w.requireOutcome(txidem.Processed, "elsewhere", w.ok)
			for _, name := range oddNames {
				w.useOddName(name)
			}
			require.Equal(t, 1, w.count(`SELECT count(*) FROM txidem_messages`))
			require.Equal(t, 1+len(oddNames), w.count(`SELECT count(*) FROM biz`))
			require.Equal(t, 3+2*len(oddNames), w.count(`SELECT count(*) FROM pg_class AS c
				JOIN pg_namespace AS n ON n.oid = c.relnamespace
				WHERE relkind = 'r' AND nspname NOT LIKE 'pg\_%' AND nspname <> 'information_schema'`), "tables")
			w.db.Invariant(t)
		})
	}
}

func (w *world) useOddName(name string) {
	w.t.Helper()
	w.exec(`CREATE SCHEMA ` + pgx.Identifier{name}.Sanitize())
	report, err := migrations.Apply(w.t.Context(), w.pool, &migrations.Config{Schema: name, Table: name})
	require.NoError(w.t, err, name)
	require.NotEmpty(w.t, report.Applied, name)
	require.Equal(w.t, 1, w.count(`SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE n.nspname = $1::text AND c.relname = $1::text`, name), "stored verbatim: %s", name)

	g := newGuard(w.t, w.pool, &txidem.Config{Consumer: consumer, Schema: name, Table: name})
	require.NoError(w.t, g.Check(w.t.Context()), name)
	for _, want := range []txidem.Outcome{txidem.Processed, txidem.Duplicate} {
		outcome, err := g.Process(w.t.Context(), "m", w.ok)
		require.NoError(w.t, err, name)
		require.Equal(w.t, want, outcome, name)
	}
	require.NoError(w.t, pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		outcome, err := g.ClaimTx(w.t.Context(), tx, "m")
		require.Equal(w.t, txidem.Duplicate, outcome, name)
		return err
	}), name)
	require.NoError(w.t, g.Forget(w.t.Context(), "m"), name)
	seen, err := g.Seen(w.t.Context(), "m")
	require.NoError(w.t, err, name)
	require.False(w.t, seen, name)
}

// Names that cannot be stored verbatim, or that could end a line or a comment, are refused by name, and nothing is sent.
func TestUnusableNames(t *testing.T) {
	t.Parallel()
	var sent statements
	pool := testdb.New(t).Pool(t, sent.install)
	for _, name := range []string{"a\nb", "a\x00b", "a\tb", "\x7f", "\xff", strings.Repeat("n", 64)} {
		for field, cfg := range map[string]*migrations.Config{"Schema": {Schema: name}, "Table": {Table: name}} {
			_, applyErr := migrations.Apply(t.Context(), pool, cfg)
			_, statusErr := migrations.Status(t.Context(), pool, cfg)
			_, downErr := migrations.Down(t.Context(), pool, cfg)
			_, sqlErr := migrations.SQL(cfg)
			for _, err := range []error{applyErr, statusErr, downErr, sqlErr} {
				require.ErrorContains(t, err, "migrations: "+field, "%q", name)
			}
			_, err := txidem.New(pool, &txidem.Config{Consumer: consumer, Schema: cfg.Schema, Table: cfg.Table})
			var configErr *txidem.ConfigError
			require.True(t, errors.As(err, &configErr), "%q", name)
			require.Equal(t, field, configErr.Field)
		}
	}
	require.Empty(t, sent.list())
}

// A version table that somebody else has written to is an error that says so, and nothing is dropped.
func TestTamperedVersionTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`UPDATE txidem_messages_migrations SET name = 'other'`)
	_, err := migrations.Down(t.Context(), w.pool, nil)
	require.ErrorContains(t, err, "changed by somebody else")
	w.exec(`UPDATE txidem_messages_migrations SET version = -version`)
	_, err = migrations.Status(t.Context(), w.pool, nil)
	require.ErrorContains(t, err, "not written by this package")
	_, err = migrations.Apply(t.Context(), w.pool, nil)
	require.ErrorContains(t, err, "not written by this package")
	_, err = migrations.Down(t.Context(), w.pool, nil)
	require.ErrorContains(t, err, "not written by this package")
	w.requireEffects(0)
}
