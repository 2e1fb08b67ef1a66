package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/pgserver"
	"github.com/txidem/txidem-go/migrations"
	"github.com/txidem/txidem-go/txidem"
)

// role makes a role for this test, runs the statements with {role} replaced by its name, and returns what makes a pool
// use it. The role is dropped at the end.
func (w *world) role(name string, statements ...string) func(*pgxpool.Config) {
	w.t.Helper()
	name = w.db.Name() + "_" + name
	quoted := pgx.Identifier{name}.Sanitize()
	w.exec(`CREATE ROLE ` + quoted)
	w.t.Cleanup(func() { w.dropRole(quoted) })
	for _, s := range statements {
		w.exec(strings.ReplaceAll(s, "{role}", quoted))
	}
	return func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["role"] = name }
}

func (w *world) dropRole(quoted string) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	conn, err := pgx.Connect(ctx, w.db.DSN())
	require.NoError(w.t, err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `DROP OWNED BY `+quoted+`; DROP ROLE `+quoted)
	require.NoError(w.t, err)
}

// handMade is a record table that somebody wrote down without the migrations. It is as it should be; the cases below
// spoil it.
const handMade = `CREATE TABLE {t} (message_id text COLLATE "C" NOT NULL, consumer text COLLATE "C" NOT NULL,
	processed_at timestamptz, CONSTRAINT "{t}_key" PRIMARY KEY (message_id, consumer))`

const partitioned = `DROP TABLE {t}; CREATE TABLE {t} (LIKE txidem_messages, PRIMARY KEY (message_id, consumer))
	PARTITION BY HASH (message_id); CREATE TABLE {t}_0 PARTITION OF {t} FOR VALUES WITH (MODULUS 1, REMAINDER 0)`

const dropKey = `ALTER TABLE {t} DROP CONSTRAINT "{t}_key"; `

// Each way in which a table can fail the promise is reported by a text of its own.
func TestCheckOfTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.guard.Check(t.Context()), "the migrated table")
	w.exec(`CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'`)
	const noKey = "no valid unique index on exactly (message_id, consumer)"
	for i, c := range []struct {
		name, spoil string
		found       []string
	}{
		{"sound", ``, nil},
		{"key in the other order", dropKey + `CREATE UNIQUE INDEX ON {t} (consumer, message_id)`, nil},
		{"two keys", `CREATE UNIQUE INDEX ON {t} (consumer, message_id)`, nil},
		{"further columns", `ALTER TABLE {t} ADD COLUMN note text DEFAULT 'x'; ALTER TABLE {t} DROP COLUMN note`, nil},

		{"covering key", dropKey + `CREATE UNIQUE INDEX ON {t} (message_id, consumer) INCLUDE (processed_at)`, nil},
		{
			"key of another collation", dropKey + `CREATE UNIQUE INDEX {t}_x ON {t} (message_id COLLATE "en-x-icu", consumer)`,
			[]string{noKey, `has the index "{t}_x"`},
		},
		{"partitioned", partitioned, nil},
		{
			"unlogged partition", `DROP TABLE {t}; CREATE TABLE {t} (LIKE txidem_messages, PRIMARY KEY (message_id, consumer))
				PARTITION BY HASH (message_id); CREATE UNLOGGED TABLE {t}_0 PARTITION OF {t} FOR VALUES WITH (MODULUS 1, REMAINDER 0)`,
			[]string{"unlogged"},
		},
		{"unlogged", `ALTER TABLE {t} SET UNLOGGED`, []string{"unlogged"}},
		{"view", `DROP TABLE {t}; CREATE VIEW {t} AS SELECT * FROM txidem_messages`, []string{"is not a table"}},
		{
			"materialized view", `DROP TABLE {t}; CREATE MATERIALIZED VIEW {t} AS SELECT * FROM txidem_messages`,
			[]string{"is not a table"},
		},

		{"no key", dropKey, []string{noKey}},
		{"index not unique", dropKey + `CREATE INDEX ON {t} (message_id, consumer)`, []string{noKey}},
		{
			"partial key", dropKey + `CREATE UNIQUE INDEX {t}_x ON {t} (message_id, consumer) WHERE processed_at IS NOT NULL`,
			[]string{noKey, `has the index "{t}_x"`},
		},
		{
			"deferrable key", dropKey + `ALTER TABLE {t} ADD CONSTRAINT {t}_x PRIMARY KEY (message_id, consumer) DEFERRABLE`,
			[]string{noKey, `has the index "{t}_x"`},
		},
		{
			"key of one column", dropKey + `CREATE UNIQUE INDEX {t}_x ON {t} (message_id)`,
			[]string{noKey, `has the index "{t}_x"`},
		},
		{
			"key of three columns", dropKey + `CREATE UNIQUE INDEX {t}_x ON {t} (message_id, consumer, processed_at)`,
			[]string{noKey, `has the index "{t}_x"`},
		},
		{
			"key of an expression", dropKey + `CREATE UNIQUE INDEX {t}_x ON {t} (lower(message_id), consumer)`,
			[]string{noKey, `has the index "{t}_x"`},
		},

		{"further index", `CREATE INDEX ON {t} (processed_at)`, nil},
		{
			"further unique indexes", `CREATE UNIQUE INDEX {t}_x ON {t} (message_id);
				CREATE UNIQUE INDEX {t}_y ON {t} (lower(consumer))`,
			[]string{`has the index "{t}_x"`, `has the index "{t}_y"`},
		},
		{
			"exclusion constraint", `ALTER TABLE {t} ADD CONSTRAINT {t}_x EXCLUDE USING btree (message_id WITH =)`,
			[]string{`has the index "{t}_x"`},
		},
		{
			"unique index of a partition", partitioned + `; CREATE UNIQUE INDEX {t}_x ON {t}_0 (message_id)`,
			[]string{`table "public"."{t}_0" has the index "{t}_x"`},
		},

		{
			"triggers", `CREATE TRIGGER before BEFORE INSERT ON {t} FOR EACH ROW EXECUTE FUNCTION noted();
				CREATE TRIGGER "of ""all""" AFTER DELETE ON {t} FOR EACH STATEMENT EXECUTE FUNCTION noted()`,
			[]string{`has the trigger "before"`, `has the trigger "of \"all\""`},
		},
		{
			"trigger of a partition", partitioned + `;
				CREATE TRIGGER mine BEFORE INSERT ON {t}_0 FOR EACH ROW EXECUTE FUNCTION noted()`,
			[]string{`table "public"."{t}_0" has the trigger "mine"`},
		},
		{
			"trigger of a partitioned table", partitioned + `;
				CREATE TRIGGER all_of AFTER INSERT ON {t} FOR EACH ROW EXECUTE FUNCTION noted()`,
			[]string{`table "public"."{t}" has the trigger "all_of"`},
		},
		{
			"triggers that do not fire", `CREATE TRIGGER a BEFORE TRUNCATE ON {t} EXECUTE FUNCTION noted();
				CREATE TRIGGER b BEFORE UPDATE ON {t} FOR EACH ROW EXECUTE FUNCTION noted();
				CREATE TRIGGER c BEFORE INSERT ON {t} FOR EACH ROW EXECUTE FUNCTION noted(); ALTER TABLE {t} DISABLE TRIGGER c;
				CREATE TRIGGER d BEFORE INSERT ON {t} FOR EACH ROW EXECUTE FUNCTION noted(); ALTER TABLE {t} ENABLE REPLICA TRIGGER d`,
			nil,
		},
		{
			"foreign keys", `CREATE TABLE {t}_c (name text COLLATE "C" PRIMARY KEY);
				ALTER TABLE {t} ADD FOREIGN KEY (consumer) REFERENCES {t}_c`, nil,
		},
		{
			"rules", `CREATE RULE swallow AS ON INSERT TO {t} DO INSTEAD NOTHING;
				CREATE RULE keep AS ON DELETE TO {t} DO INSTEAD NOTHING;
				CREATE RULE off AS ON DELETE TO {t} DO ALSO NOTHING; ALTER TABLE {t} DISABLE RULE off`,
			[]string{`has the rule "swallow"`, `has the rule "keep"`},
		},

		{
			"default collation", `ALTER TABLE {t} ALTER message_id TYPE text COLLATE "default"`,
			[]string{`column message_id`, `has collation "default"`},
		},
		{
			"other collation", `ALTER TABLE {t} ALTER consumer TYPE text COLLATE "ucs_basic"`,
			[]string{`column consumer`, `has collation "ucs_basic"`},
		},
		{
			"both collations", `ALTER TABLE {t} ALTER message_id TYPE text COLLATE "POSIX", ALTER consumer TYPE text COLLATE "POSIX"`,
			[]string{`column message_id`, `column consumer`, `has collation "POSIX"`},
		},

		{
			"varchar", `ALTER TABLE {t} ALTER message_id TYPE varchar(1024) COLLATE "C"`,
			[]string{"column message_id", "is character varying: it must be text"},
		},
		{
			"integer consumer", `ALTER TABLE {t} ALTER consumer TYPE int USING 1`,
			[]string{"column consumer", "is integer: it must be text"},
		},
		{
			"uuid", `ALTER TABLE {t} ALTER message_id TYPE uuid USING message_id::uuid`,
			[]string{"column message_id", "is uuid: it must be text"},
		},
		{
			"timestamp without zone", `ALTER TABLE {t} ALTER processed_at TYPE timestamp`,
			[]string{"column processed_at", "is timestamp without time zone: it must be timestamptz"},
		},
		{"processed_at missing", `ALTER TABLE {t} DROP COLUMN processed_at`, []string{"column processed_at", "is missing"}},
		{"message_id missing", `ALTER TABLE {t} DROP COLUMN message_id`, []string{"column message_id", "is missing", noKey}},
		{
			"processed_at not null", `ALTER TABLE {t} ALTER processed_at SET NOT NULL`,
			[]string{"column processed_at", "is NOT NULL: it must allow NULL"},
		},
		{
			"nullable key", dropKey + `CREATE UNIQUE INDEX ON {t} (message_id, consumer);
				ALTER TABLE {t} ALTER consumer DROP NOT NULL`,
			[]string{"column consumer", "allows NULL"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			table := fmt.Sprintf("t%d", i)
			_, err := w.pool.Exec(t.Context(), strings.ReplaceAll(handMade+`; `+c.spoil, "{t}", table))
			require.NoError(t, err)
			g := newGuard(t, w.pool, &txidem.Config{Consumer: consumer, Table: table})
			for i, text := range c.found {
				c.found[i] = strings.ReplaceAll(text, "{t}", table)
			}
			requireFound(t, g.Check(t.Context()), c.found)
		})
	}
}

// requireFound asserts that Check reported these and no others: each text is in some line, each line has one of the texts
// and is an error of its own, and there is none when want is empty.
func requireFound(t *testing.T, err error, want []string) {
	t.Helper()
	if len(want) == 0 {
		require.NoError(t, err)
		return
	}
	for _, text := range want {
		require.ErrorContains(t, err, text)
	}
	var joined interface{ Unwrap() []error }
	require.ErrorAs(t, err, &joined)
	for _, problem := range joined.Unwrap() {
		line := problem.Error()
		require.True(t, strings.HasPrefix(line, "txidem: check: "), line)
		require.NotContains(t, line, "\n")
		require.True(t, slices.ContainsFunc(want, func(text string) bool { return strings.Contains(line, text) }), line)
	}
}

// An index that could not be built stays behind invalid, and keeps no duplicate out.
func TestCheckOfAnInvalidIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`ALTER TABLE txidem_messages DROP CONSTRAINT txidem_messages_pkey`)
	w.exec(`INSERT INTO txidem_messages SELECT 'm', $1::text, now() FROM generate_series(1, 2)`, consumer)
	_, err := w.pool.Exec(t.Context(), `CREATE UNIQUE INDEX CONCURRENTLY later ON txidem_messages (message_id, consumer)`)
	requireState(t, "23505", err)
	require.Equal(t, 1, w.count(`SELECT count(*) FROM pg_index WHERE indexrelid = 'later'::regclass AND NOT indisvalid`))
	require.ErrorContains(t, w.guard.Check(t.Context()), "no valid unique index")
	w.exec(`DELETE FROM txidem_messages`)
	w.exec(`REINDEX INDEX later`)
	require.NoError(t, w.guard.Check(t.Context()))
}

func TestCheckOfAMissingTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, cfg := range []txidem.Config{{Table: "nothing"}, {Schema: "nowhere"}, {Table: "Txidem_Messages"}} {
		cfg.Consumer = consumer
		err := newGuard(t, w.pool, &cfg).Check(t.Context())
		require.ErrorIs(t, err, txidem.ErrNoTable)
		requireFound(t, err, []string{"does not exist: apply the migrations to schema"})
	}
}

// A trigger that fires where replication applies changes is one there, and only there.
func TestCheckOfTriggersOfAReplica(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'`)
	w.exec(`CREATE TRIGGER origin BEFORE INSERT ON txidem_messages FOR EACH ROW EXECUTE FUNCTION noted()`)
	w.exec(`CREATE TRIGGER replica BEFORE INSERT ON txidem_messages FOR EACH ROW EXECUTE FUNCTION noted()`)
	w.exec(`ALTER TABLE txidem_messages ENABLE REPLICA TRIGGER replica`)
	for role, fires := range map[string]string{"origin": "origin", "local": "origin", "replica": "replica"} {
		pool := w.db.Pool(t, sessionSetting("session_replication_role", role))
		err := newGuard(t, pool, &txidem.Config{Consumer: consumer}).Check(t.Context())
		requireFound(t, err, []string{fmt.Sprintf("has the trigger %q", fires)})
	}
}

// A role with less than the rights, or under row security, is told so.
func TestCheckOfRights(t *testing.T) {
	t.Parallel()
	const (
		usage  = `GRANT USAGE ON SCHEMA own TO {role}`
		rights = `GRANT SELECT, INSERT, DELETE ON own.txidem_messages TO {role}`
		// what is found
		schema  = `the role lacks USAGE on schema "own": nothing works without it`
		process = `the role lacks SELECT or INSERT on table "own"."txidem_messages": Process needs both`
		further = `the role lacks DELETE on table "own"."txidem_messages": Forget and WithSavepoints need it`
	)
	for name, c := range map[string]struct {
		statements []string
		found      []string
	}{
		"all":       {[]string{usage, rights}, nil},
		"no use":    {[]string{rights}, []string{schema}},
		"no insert": {[]string{usage, `GRANT SELECT, DELETE ON own.txidem_messages TO {role}`}, []string{process}},
		"no select": {[]string{usage, `GRANT INSERT, DELETE ON own.txidem_messages TO {role}`}, []string{process}},
		"no delete": {[]string{usage, `GRANT SELECT, INSERT ON own.txidem_messages TO {role}`}, []string{further}},
		"none":      {nil, []string{schema, process, further}},
		"row security": {
			[]string{usage, rights, `ALTER TABLE own.txidem_messages ENABLE ROW LEVEL SECURITY`},
			[]string{"row security applies to this role"},
		},
		"row security that the role bypasses": {
			[]string{usage, rights, `ALTER TABLE own.txidem_messages ENABLE ROW LEVEL SECURITY`, `ALTER ROLE {role} BYPASSRLS`}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.migrateOwn()
			pool := w.db.Pool(t, w.role("worker", c.statements...))
			g := newGuard(t, pool, &txidem.Config{Consumer: consumer, Schema: "own"})
			requireFound(t, g.Check(t.Context()), c.found)
		})
	}
}

// A role without DELETE can process messages, and cannot have them processed again.
func TestProcessNeedsNoDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.migrateOwn()
	w.pool = w.db.Pool(t, w.role("worker", `GRANT USAGE ON SCHEMA own TO {role}`,
		`GRANT SELECT, INSERT ON own.txidem_messages TO {role}`, `GRANT SELECT, INSERT ON biz TO {role}`))
	w.guard = newGuard(t, w.pool, &txidem.Config{Consumer: consumer, Schema: "own"})
	requireFound(t, w.guard.Check(t.Context()), []string{"Process works without it"})
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireOutcome(txidem.Duplicate, "m", w.ok)
	requireState(t, "42501", w.guard.Forget(t.Context(), "m"))
	w.requireSeen(true, "m")
	w.db.Invariant(t)
}

// migrateOwn makes a record table in a schema named own, on which nobody else has any right.
func (w *world) migrateOwn() {
	w.t.Helper()
	w.exec(`CREATE SCHEMA own`)
	_, err := migrations.Apply(w.t.Context(), w.pool, &migrations.Config{Schema: "own"})
	require.NoError(w.t, err)
}

// readWrite asks for transactions that write, whatever the session's default is.
func readWrite(c *txidem.Config) { c.TxOptions.AccessMode = pgx.ReadWrite }

// sessionSetting makes the sessions of a pool begin with a setting.
func sessionSetting(name, value string) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams[name] = value }
}

// Settings under which the server does not keep what it acknowledges, takes no claim, or cuts off the wait for a copy.
func TestCheckOfTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const cut = "a wait for a copy in flight is cut off"
	for _, c := range []struct {
		setting, value string
		change         func(*txidem.Config)
		found          []string
	}{
		{"synchronous_commit", "off", nil, []string{"synchronous_commit is off"}},
		{"synchronous_commit", "local", nil, nil},
		{"default_transaction_read_only", "on", nil, []string{"default_transaction_read_only is on for this role"}},
		{"default_transaction_read_only", "on", readWrite, []string{"Process works by the TxOptions, Remember and Forget do not"}},
		{"statement_timeout", "0", nil, nil},
		{"statement_timeout", "5001", nil, nil},
		{"statement_timeout", "5000", nil, []string{"statement_timeout is 5s and InFlightWait is 5s: " + cut}},
		{"statement_timeout", "200ms", nil, []string{"statement_timeout is 200ms and InFlightWait is 5s: " + cut}},
		{"statement_timeout", "200ms", inFlightWait(199 * time.Millisecond), nil},
		{"lock_timeout", "1ms", nil, nil},
	} {
		cfg := &txidem.Config{Consumer: consumer}
		if c.change != nil {
			c.change(cfg)
		}
		err := newGuard(t, w.db.Pool(t, sessionSetting(c.setting, c.value)), cfg).Check(t.Context())
		requireFound(t, err, c.found)
	}
}

// transaction_timeout ends the session, and the wait with it. PostgreSQL has it from version 17 on.
func TestCheckOfTheTransactionTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if version := w.count(`SELECT current_setting('server_version_num')::int`); version < 170000 {
		t.Skipf("needs PostgreSQL 17 or later, this is %d", version)
	}
	for value, found := range map[string][]string{
		"0": nil, "6s": nil, "5s": {"transaction_timeout is 5s and InFlightWait is 5s: a wait for a copy in flight is cut off"},
	} {
		pool := w.db.Pool(t, sessionSetting("transaction_timeout", value))
		requireFound(t, newGuard(t, pool, &txidem.Config{Consumer: consumer}).Check(t.Context()), found)
	}
}

// A standby takes no claim, and nothing that the session could be told changes that. Its schema is looked at all the same.
func TestCheckOnAStandby(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := startLocal(t)
	conn, err := pgx.Connect(ctx, server.DSN())
	require.NoError(t, err)
	_, err = migrations.Apply(ctx, conn, nil)
	require.NoError(t, err)
	var folder string
	require.NoError(t, conn.QueryRow(ctx, `SHOW data_directory`).Scan(&folder))
	_, err = conn.Exec(ctx, `COPY (SELECT WHERE false) TO '`+folder+`/standby.signal'`)
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
	require.NoError(t, server.Restart(ctx))

	pool, err := pgxpool.New(ctx, server.DSN())
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	for _, change := range []func(*txidem.Config){func(*txidem.Config) {}, readWrite} {
		cfg := &txidem.Config{Consumer: consumer}
		change(cfg)
		requireFound(t, newGuard(t, pool, cfg).Check(ctx), []string{"the server is a standby, which takes no claim"})
	}
	report, err := migrations.Apply(ctx, pool, nil)
	require.NoError(t, err, "nothing to do, so nothing is written")
	require.Empty(t, report.Applied)
	_, err = migrations.Apply(ctx, pool, &migrations.Config{Table: "later"})
	require.ErrorContains(t, err, "migrations: a transaction: ")
	require.ErrorContains(t, err, "connect to the primary")
}

// startLocal starts a server of this test's own, which it may stop and set up anew.
func startLocal(t *testing.T) *pgserver.Local {
	t.Helper()
	server, err := pgserver.StartLocal(t.Context(), pgserver.Options{})
	if err != nil && strings.Contains(err.Error(), "no folder with initdb and postgres") {
		t.Skipf("needs PostgreSQL server binaries (initdb, postgres): install them or set TXIDEM_PGBIN\n%v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.WithoutCancel(t.Context()))) })
	return server
}

// What Check says of triggers, rules and indexes is what a delivery meets.
func TestWhatCheckFindsOnATableIsReal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil string
		meet  func(w *world)
	}{
		"trigger that keeps the record out": {`CREATE TRIGGER out BEFORE INSERT ON txidem_messages FOR EACH ROW
			EXECUTE FUNCTION changed('drop')`, func(w *world) {
			_, err := w.process("m")
			require.ErrorIs(w.t, err, txidem.ErrNoRecord)
			w.requireCalls(0)
		}},
		"trigger that changes the record": {`CREATE TRIGGER out BEFORE INSERT ON txidem_messages FOR EACH ROW
			EXECUTE FUNCTION changed('rename')`, func(w *world) {
			w.requireOutcome(txidem.Processed, "m", w.ok)
			w.requireOutcome(txidem.Processed, "m", w.ok)
		}},
		"rule": {`CREATE RULE r AS ON UPDATE TO txidem_messages DO ALSO NOTHING`, func(w *world) {
			_, err := w.process("m")
			requireState(w.t, "0A000", err)
			w.requireCalls(0)
		}},
		"index": {`CREATE UNIQUE INDEX alone ON txidem_messages (message_id)`, func(w *world) {
			w.requireOutcome(txidem.Processed, "m", w.ok)
			other := newGuard(w.t, w.pool, &txidem.Config{Consumer: "other"})
			_, err := other.Process(w.t.Context(), "m", w.ok)
			requireState(w.t, "23505", err)
			w.requireCalls(1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.exec(`CREATE FUNCTION changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF TG_ARGV[0] = 'drop' THEN RETURN NULL; END IF;
				NEW.message_id := gen_random_uuid()::text; RETURN NEW; END $$`)
			w.exec(c.spoil)
			require.ErrorContains(t, w.guard.Check(t.Context()), `table "public"."txidem_messages" has the `)
			c.meet(w)
			w.db.Invariant(t)
		})
	}
}

// A timeout of the session that is shorter than the wait does cut it off, which is what Check says of it.
func TestStatementTimeoutCutsTheWaitOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool := w.db.Pool(t, sessionSetting("statement_timeout", shortTimeout))
	g := newGuard(t, pool, &txidem.Config{Consumer: consumer, InFlightWait: time.Hour})
	require.ErrorContains(t, g.Check(t.Context()), "statement_timeout is 1s and InFlightWait is 1h0m0s")
	h := w.hold(w.guard, "m")
	_, err := g.Process(t.Context(), "m", w.ok)
	require.ErrorIs(t, err, txidem.ErrInFlight)
	h.end(nil)
	w.requireCalls(1)
	w.requireEffects(1)
}

// Check only reads, and commits nothing: who watches for a COMMIT, to see that a message was processed, sees none.
func TestCheckOnlyReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var sent statements
	pool := w.db.Pool(t, sent.install)
	require.NoError(t, newGuard(t, pool, &txidem.Config{Consumer: consumer}).Check(t.Context()))
	list := sent.list()
	require.Greater(t, len(list), 2)
	require.True(t, strings.HasPrefix(list[0], "begin isolation level read committed"), list[0])
	for _, sql := range list[1 : len(list)-1] {
		require.True(t, strings.HasPrefix(sql, "SELECT ") || strings.HasPrefix(sql, "WITH "), sql)
	}
	require.Equal(t, "rollback", list[len(list)-1])
}

// A look that is cut off is an error of its own, with the context's in its chain.
func TestCheckIsCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	pool := w.db.Pool(t, func(c *pgxpool.Config) {
		c.ConnConfig.Tracer = &endsContext{after: "begin", end: cancel}
	})
	err := newGuard(t, pool, &txidem.Config{Consumer: consumer}).Check(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, strings.HasPrefix(err.Error(), "txidem: check: read the server's settings: "), err)
	w.db.Invariant(t)
}

// endsContext ends a context when a statement that begins so has been answered.
type endsContext struct {
	errorTracer
	after string
	end   func()
	now   bool
}

func (e *endsContext) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	e.now = strings.HasPrefix(data.SQL, e.after)
	return ctx
}

func (e *endsContext) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {
	if e.now {
		e.end()
	}
}

// Several problems are found at once, so that one start-up shows them all.
func TestCheckReportsEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`CREATE UNLOGGED TABLE bad (message_id varchar, consumer text, processed_at date NOT NULL)`)
	w.exec(`ALTER TABLE bad ENABLE ROW LEVEL SECURITY`)
	w.exec(`CREATE TRIGGER audit AFTER INSERT ON bad EXECUTE FUNCTION suppress_redundant_updates_trigger()`)
	pool := w.db.Pool(t, w.role("worker"), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
		c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	})
	err := newGuard(t, pool, &txidem.Config{Consumer: consumer, Table: "bad"}).Check(t.Context())
	found := []string{
		"synchronous_commit is off", "the session is read only", "column message_id of", "column consumer of",
		"allows NULL", `has collation "default"`, "it must be timestamptz", "it must allow NULL", "unlogged", "row security",
		"lacks SELECT or INSERT", "lacks DELETE", "no valid unique index", `has the trigger "audit"`,
	}
	requireFound(t, err, found)
	require.Equal(t, len(found)-1, strings.Count(err.Error(), "txidem: check: "), "a line each, two texts in one:\n%v", err)

	w.exec(`DROP TABLE bad`)
	err = newGuard(t, pool, &txidem.Config{Consumer: consumer, Table: "bad"}).Check(t.Context())
	require.ErrorIs(t, err, txidem.ErrNoTable)
	require.ErrorContains(t, err, "synchronous_commit is off", "a missing table hides nothing")
}

// The key is COLLATE "C" in a database whose default is a language's order, and a key that is not is reported.
func TestKeyIsCWhateverTheDatabaseSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool := w.linguisticPool()
	ctx := t.Context()
	var less bool
	require.NoError(t, pool.QueryRow(ctx, `SELECT 'a' < 'B'`).Scan(&less))
	require.True(t, less, "the database's default order is by letter, not by byte")

	_, err := migrations.Apply(ctx, pool, nil)
	require.NoError(t, err)
	g := newGuard(t, pool, &txidem.Config{Consumer: consumer})
	require.NoError(t, g.Check(ctx))
	for _, id := range []string{"a", "B", "A", composed, decomposed} {
		outcome, err := g.Process(ctx, id, func(context.Context, pgx.Tx) error { return nil })
		require.NoError(t, err)
		require.Equal(t, txidem.Processed, outcome)
	}
	rows, err := pool.Query(ctx, `SELECT message_id FROM txidem_messages ORDER BY message_id`)
	require.NoError(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, []string{"A", "B", "a", decomposed, composed}, ids)

	_, err = pool.Exec(ctx, `CREATE TABLE plain (message_id text, consumer text, processed_at timestamptz,
		PRIMARY KEY (message_id, consumer))`)
	require.NoError(t, err)
	err = newGuard(t, pool, &txidem.Config{Consumer: consumer, Table: "plain"}).Check(ctx)
	requireFound(t, err, []string{"column message_id", "column consumer", `has collation "default"`})
	w.db.Invariant(t)
}

// linguisticPool makes a database beside the test's own whose default collation is a language's, and a pool on it.
func (w *world) linguisticPool() *pgxpool.Pool {
	w.t.Helper()
	name := w.db.Name() + "_en"
	quoted := pgx.Identifier{name}.Sanitize()
	var errs []error
	for _, locale := range []string{
		`LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C.UTF-8'`, // PostgreSQL 15 and later, built with ICU
		`LC_COLLATE 'en_US.UTF-8' LC_CTYPE 'en_US.UTF-8'`,
		`LC_COLLATE 'en_US.utf8' LC_CTYPE 'en_US.utf8'`,
	} {
		_, err := w.pool.Exec(w.t.Context(), `CREATE DATABASE `+quoted+` TEMPLATE template0 ENCODING 'UTF8' `+locale)
		if err == nil {
			w.t.Cleanup(func() { w.dropDatabase(quoted) })
			return w.db.Pool(w.t, func(c *pgxpool.Config) { c.ConnConfig.Database = name })
		}
		errs = append(errs, err)
	}
	w.t.Skipf("the server has neither ICU as a locale provider nor the locale en_US.UTF-8: %v", errs)
	return nil
}

func (w *world) dropDatabase(quoted string) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	conn, err := pgx.Connect(ctx, w.db.DSN())
	require.NoError(w.t, err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `DROP DATABASE `+quoted+` WITH (FORCE)`)
	require.NoError(w.t, err)
}

// INSERT, SELECT and DELETE on the table are all the rights that a worker needs, in every exec mode.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	for _, mode := range execModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.migrateOwn()
			w.pool = w.db.Pool(t, execMode(mode), w.role("worker", `GRANT USAGE ON SCHEMA own TO {role}`,
				`GRANT INSERT, SELECT, DELETE ON own.txidem_messages TO {role}`, `GRANT INSERT, SELECT ON biz TO {role}`))
			w.guard = newGuard(t, w.pool, &txidem.Config{Consumer: consumer, Schema: "own"})
			w.useOnce("own.txidem_messages")
			w.db.Invariant(t)
			_, err := w.pool.Exec(t.Context(), `UPDATE own.txidem_messages SET processed_at = NULL`)
			requireState(t, "42501", err)
		})
	}
}
