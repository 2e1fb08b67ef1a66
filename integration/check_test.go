package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

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

const dropKey = `ALTER TABLE {t} DROP CONSTRAINT "{t}_key"; `

// Case 28 and its kind: each way in which a table can fail the promise is reported by a text of its own.
func TestCheckOfTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.guard.Check(t.Context()), "the migrated table")
	const noKey = "no valid unique index on exactly (message_id, consumer)"
	for i, c := range []struct {
		name, spoil string
		found       []string
	}{
		{"sound", ``, nil},
		{"key in the other order", dropKey + `CREATE UNIQUE INDEX ON {t} (consumer, message_id)`, nil},
		{"further columns", `ALTER TABLE {t} ADD COLUMN note text DEFAULT 'x'; ALTER TABLE {t} DROP COLUMN note`, nil},

		{"covering key", dropKey + `CREATE UNIQUE INDEX ON {t} (message_id, consumer) INCLUDE (processed_at)`, nil},
		{"key of another collation", dropKey + `CREATE UNIQUE INDEX ON {t} (message_id COLLATE "en-x-icu", consumer)`, []string{noKey}},
		{
			"partitioned", `DROP TABLE {t}; CREATE TABLE {t} (LIKE txidem_messages, PRIMARY KEY (message_id, consumer))
				PARTITION BY HASH (message_id); CREATE TABLE {t}_0 PARTITION OF {t} FOR VALUES WITH (MODULUS 1, REMAINDER 0)`, nil,
		},
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
			"partial key", dropKey + `CREATE UNIQUE INDEX ON {t} (message_id, consumer) WHERE processed_at IS NOT NULL`,
			[]string{noKey},
		},
		{"deferrable key", dropKey + `ALTER TABLE {t} ADD PRIMARY KEY (message_id, consumer) DEFERRABLE`, []string{noKey}},
		{"key of one column", dropKey + `CREATE UNIQUE INDEX ON {t} (message_id)`, []string{noKey}},
		{"key of three columns", dropKey + `CREATE UNIQUE INDEX ON {t} (message_id, consumer, processed_at)`, []string{noKey}},
		{"key of an expression", dropKey + `CREATE UNIQUE INDEX ON {t} (lower(message_id), consumer)`, []string{noKey}},

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
			[]string{"column processed_at", "is NOT NULL: a lease needs NULL"},
		},
		{
			"nullable key", dropKey + `CREATE UNIQUE INDEX ON {t} (message_id, consumer); ALTER TABLE {t} ALTER consumer DROP NOT NULL`,
			[]string{"column consumer", "allows NULL"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			table := fmt.Sprintf("t%d", i)
			_, err := w.pool.Exec(t.Context(), strings.ReplaceAll(handMade+`; `+c.spoil, "{t}", table))
			require.NoError(t, err)
			g := newGuard(t, w.pool, &txidem.Config{Consumer: consumer, Table: table})
			requireFound(t, g.Check(t.Context()), c.found)
		})
	}
}

// requireFound asserts that Check reported these and no others: as many lines as it takes, and nothing when want is empty.
func requireFound(t *testing.T, err error, want []string) {
	t.Helper()
	if len(want) == 0 {
		require.NoError(t, err)
		return
	}
	for _, text := range want {
		require.ErrorContains(t, err, text)
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		require.True(t, strings.HasPrefix(line, "txidem: check: "), line)
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
		require.ErrorContains(t, err, "apply the migrations")
	}
}

// A role with less than the rights, or under row security, is told so.
func TestCheckOfRights(t *testing.T) {
	t.Parallel()
	const (
		usage  = `GRANT USAGE ON SCHEMA own TO {role}`
		rights = `GRANT SELECT, INSERT, DELETE ON own.txidem_messages TO {role}`
		needs  = `the role needs USAGE on schema "own" and SELECT, INSERT and DELETE`
	)
	for name, c := range map[string]struct {
		statements []string
		found      []string
	}{
		"all":    {[]string{usage, rights}, nil},
		"no use": {[]string{rights}, []string{needs}},
		"select": {[]string{usage, `GRANT SELECT ON own.txidem_messages TO {role}`}, []string{needs}},
		"insert": {[]string{usage, `GRANT SELECT, INSERT ON own.txidem_messages TO {role}`}, []string{needs}},
		"delete": {[]string{usage, `GRANT SELECT, DELETE ON own.txidem_messages TO {role}`}, []string{needs}},
		"none":   {nil, []string{needs}},
		"row security": {
			[]string{usage, rights, `ALTER TABLE own.txidem_messages ENABLE ROW LEVEL SECURITY`},
			[]string{"row security applies to this role"},
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

// migrateOwn makes a record table in a schema named own, on which nobody else has any right.
func (w *world) migrateOwn() {
	w.t.Helper()
	w.exec(`CREATE SCHEMA own`)
	_, err := migrations.Apply(w.t.Context(), w.pool, &migrations.Config{Schema: "own"})
	require.NoError(w.t, err)
}

// Settings under which the server does not keep what it acknowledges, or takes no claim.
func TestCheckOfTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for setting, c := range map[string]struct{ value, found string }{
		"synchronous_commit":            {"off", "synchronous_commit is off"},
		"default_transaction_read_only": {"on", "the session is read only"},
	} {
		pool := w.db.Pool(t, func(c2 *pgxpool.Config) { c2.ConnConfig.RuntimeParams[setting] = c.value })
		err := newGuard(t, pool, &txidem.Config{Consumer: consumer}).Check(t.Context())
		requireFound(t, err, []string{c.found})
	}
	local := w.db.Pool(t, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["synchronous_commit"] = "local" })
	require.NoError(t, newGuard(t, local, &txidem.Config{Consumer: consumer}).Check(t.Context()))
}

// Several problems are found at once, so that one start-up shows them all.
func TestCheckReportsEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`CREATE UNLOGGED TABLE bad (message_id varchar, consumer text, processed_at date NOT NULL)`)
	w.exec(`ALTER TABLE bad ENABLE ROW LEVEL SECURITY`)
	pool := w.db.Pool(t, w.role("worker"), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
		c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	})
	err := newGuard(t, pool, &txidem.Config{Consumer: consumer, Table: "bad"}).Check(t.Context())
	found := []string{
		"synchronous_commit is off", "the session is read only", "column message_id of", "column consumer of",
		"allows NULL", `has collation "default"`, "it must be timestamptz", "a lease needs NULL", "unlogged", "row security",
		"the role needs", "no valid unique index",
	}
	requireFound(t, err, found)
	require.Equal(t, len(found)-1, strings.Count(err.Error(), "txidem: check: "), "a line each; message_id has one for its type alone:\n%v", err)

	w.exec(`DROP TABLE bad`)
	err = newGuard(t, pool, &txidem.Config{Consumer: consumer, Table: "bad"}).Check(t.Context())
	require.ErrorIs(t, err, txidem.ErrNoTable)
	require.ErrorContains(t, err, "synchronous_commit is off", "a missing table hides nothing")
}

// Case 28: the key is COLLATE "C" in a database whose default is a language's order, and a key that is not is reported.
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
