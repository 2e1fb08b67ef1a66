package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/txidem/txidem-go/txidem"
)

// sqlTx is what the tests use of another library's transaction. That each of them has it, and so fits ClaimSQL, is part
// of what they test.
type sqlTx interface {
	txidem.SQLTx
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

var (
	_ sqlTx = (*sql.Tx)(nil)
	_ sqlTx = (*sqlx.Tx)(nil)
	_ sqlTx = bun.Tx{}.Tx
	_ sqlTx = (*entsql.Tx)(nil)
	_ sqlTx = gorm.Tx(nil)
)

// inTx runs fn in a transaction in a library's own way, and commits when fn returns nil.
type inTx func(ctx context.Context, fn func(tx sqlTx) error) error

// sqlLibrary opens one library over a driver of database/sql.
type sqlLibrary func(t *testing.T, db *sql.DB) inTx

var sqlLibraries = map[string]sqlLibrary{
	"database/sql":  openSQL,
	"sqlx":          openSQLX,
	"bun":           openBun,
	"ent":           openEnt,
	"gorm":          openGORM(false),
	"gorm prepared": openGORM(true),
}

const simpleProtocol = "pgx simple protocol"

// sqlDrivers opens a *sql.DB on a database of pgx's configuration.
var sqlDrivers = map[string]func(t *testing.T, cfg *pgx.ConnConfig) *sql.DB{
	"pgx": func(_ *testing.T, cfg *pgx.ConnConfig) *sql.DB { return stdlib.OpenDB(*cfg) },
	simpleProtocol: func(_ *testing.T, cfg *pgx.ConnConfig) *sql.DB {
		cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		return stdlib.OpenDB(*cfg)
	},
	"pq": openPQ,
}

func openPQ(t *testing.T, cfg *pgx.ConnConfig) *sql.DB {
	t.Helper()
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	dsn := ""
	for key, value := range map[string]string{
		"host": cfg.Host, "port": fmt.Sprint(cfg.Port), "user": cfg.User, "password": cfg.Password,
		"dbname": cfg.Database, "sslmode": "prefer",
	} {
		dsn += key + "='" + quote.Replace(value) + "' "
	}
	db, err := sql.Open("postgres", dsn)
	require.NoError(t, err)
	return db
}

func openSQL(_ *testing.T, db *sql.DB) inTx {
	return func(ctx context.Context, fn func(tx sqlTx) error) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		return finish(tx, fn(tx))
	}
}

func openSQLX(_ *testing.T, db *sql.DB) inTx {
	x := sqlx.NewDb(db, "postgres")
	return func(ctx context.Context, fn func(tx sqlTx) error) error {
		tx, err := x.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		return finish(tx, fn(tx))
	}
}

// openBun hands over the *sql.Tx inside bun's transaction; see TestClaimSQLWithBunsOwnMethods.
func openBun(_ *testing.T, db *sql.DB) inTx {
	b := bun.NewDB(db, pgdialect.New())
	return func(ctx context.Context, fn func(tx sqlTx) error) error {
		return b.RunInTx(ctx, nil, func(_ context.Context, tx bun.Tx) error { return fn(tx.Tx) })
	}
}

// openEnt uses the transaction of ent's SQL driver, which is below the generated code.
func openEnt(_ *testing.T, db *sql.DB) inTx {
	driver := entsql.OpenDB(dialect.Postgres, db)
	return func(ctx context.Context, fn func(tx sqlTx) error) error {
		tx, err := driver.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		return finish(tx, fn(tx.(sqlTx)))
	}
}

// gormNeverExpires is the one age of prepared statements for which GORM starts no goroutine that never ends.
const gormNeverExpires = 10 * 365 * 24 * time.Hour

func openGORM(prepare bool) sqlLibrary {
	return func(t *testing.T, db *sql.DB) inTx {
		t.Helper()
		g, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{
			PrepareStmt: prepare, PrepareStmtTTL: gormNeverExpires,
		})
		require.NoError(t, err)
		return func(ctx context.Context, fn func(tx sqlTx) error) error {
			return g.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
				return fn(tx.Statement.ConnPool.(txidem.SQLTx).(sqlTx)) // the first assertion is the one in ClaimSQL's godoc
			})
		}
	}
}

// finish ends a transaction as its owner does.
func finish(tx interface {
	Commit() error
	Rollback() error
}, err error,
) error {
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// A claim outside a transaction would be worth nothing, so what is no transaction does not fit.
func TestDatabasesDoNotFitClaimSQL(t *testing.T) {
	t.Parallel()
	fits := reflect.TypeFor[txidem.SQLTx]()
	for _, v := range []any{
		&sql.DB{}, &sql.Conn{}, &sqlx.DB{}, &sqlx.Conn{}, &bun.DB{}, bun.Conn{}, &gorm.DB{}, &entsql.Driver{},
	} {
		require.False(t, reflect.TypeOf(v).Implements(fits), "%T", v)
	}
}

// joiner claims in transactions of one library over one driver.
type joiner struct {
	*world
	inTx inTx
}

// ClaimSQL does the same in every library over every driver.
func TestClaimSQL(t *testing.T) {
	t.Parallel()
	for driver, open := range sqlDrivers {
		for library, use := range sqlLibraries {
			if driver == simpleProtocol && library != "database/sql" {
				continue // one library is enough to show the mode
			}
			t.Run(library+" over "+driver, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, inFlightWait(50*time.Millisecond))
				j := joiner{world: w, inTx: use(t, w.openSQL(open))}
				for _, try := range []func(){
					j.tryOutcomes, j.tryDuplicate, j.tryClaimingTwice, j.trySavepoints, j.tryCopyInFlight, j.tryOtherIDs,
				} {
					j.exec(`TRUNCATE txidem_messages, biz`)
					try()
				}
			})
		}
	}
}

// openSQL opens the test's database with a driver.
func (w *world) openSQL(open func(t *testing.T, cfg *pgx.ConnConfig) *sql.DB) *sql.DB {
	w.t.Helper()
	cfg, err := pgx.ParseConfig(w.db.DSN())
	require.NoError(w.t, err)
	db := open(w.t, cfg)
	w.t.Cleanup(func() { require.NoError(w.t, db.Close()) })
	return db
}

// callersTimeout is the lock_timeout that the caller's session has in these tests.
const callersTimeout = "1234ms"

// claim claims inside tx and does the work of a message that is new. The session's lock_timeout is the caller's before
// and after.
func (j joiner) claim(tx sqlTx, id string) (txidem.Outcome, error) {
	j.t.Helper()
	_, err := tx.ExecContext(j.t.Context(), `SET lock_timeout = '`+callersTimeout+`'`)
	require.NoError(j.t, err)
	outcome, err := j.guard.ClaimSQL(j.t.Context(), tx, id)
	if err == nil || errors.Is(err, txidem.ErrAlreadyClaimed) {
		j.requireLockTimeout(tx)
	}
	if err == nil && outcome == txidem.Claimed {
		j.work(tx)
	}
	return outcome, err
}

// work inserts one row of the business table.
func (j joiner) work(tx sqlTx) {
	j.t.Helper()
	_, err := tx.ExecContext(j.t.Context(), `INSERT INTO biz (v) VALUES ($1)`, "work")
	require.NoError(j.t, err)
}

func (j joiner) requireLockTimeout(tx sqlTx) {
	j.t.Helper()
	rows, err := tx.QueryContext(j.t.Context(), `SHOW lock_timeout`)
	require.NoError(j.t, err)
	defer func() { require.NoError(j.t, rows.Close()) }()
	require.True(j.t, rows.Next())
	var value string
	require.NoError(j.t, rows.Scan(&value))
	require.Equal(j.t, callersTimeout, value)
	require.False(j.t, rows.Next())
	require.NoError(j.t, rows.Err())
}

// requireClaim claims in a transaction of its own that commits.
func (j joiner) requireClaim(want txidem.Outcome, id string) {
	j.t.Helper()
	require.NoError(j.t, j.inTx(j.t.Context(), func(tx sqlTx) error {
		outcome, err := j.claim(tx, id)
		require.Equal(j.t, want, outcome)
		return err
	}))
}

// tryOutcomes: the claim is rolled back and committed with the caller's work.
func (j joiner) tryOutcomes() {
	j.t.Helper()
	err := j.inTx(j.t.Context(), func(tx sqlTx) error {
		outcome, err := j.claim(tx, "m")
		require.NoError(j.t, err)
		require.Equal(j.t, txidem.Claimed, outcome)
		return io.EOF
	})
	require.ErrorIs(j.t, err, io.EOF)
	j.requireEffects(0)
	j.requireClaim(txidem.Claimed, "m")
	j.requireClaim(txidem.Duplicate, "m")
	j.requireOutcome(txidem.Duplicate, "m", j.ok) // Process knows what was claimed
	j.requireEffects(1)
}

// tryDuplicate shows that the caller goes on working in its transaction after a duplicate.
func (j joiner) tryDuplicate() {
	j.t.Helper()
	j.requireOutcome(txidem.Processed, "m", j.ok) // and what was processed is a duplicate here
	require.NoError(j.t, j.inTx(j.t.Context(), func(tx sqlTx) error {
		outcome, err := j.claim(tx, "m")
		require.NoError(j.t, err)
		require.Equal(j.t, txidem.Duplicate, outcome)
		outcome, err = j.claim(tx, "n")
		require.Equal(j.t, txidem.Claimed, outcome)
		return err
	}))
	j.requireClaim(txidem.Duplicate, "n")
	j.requireEffects(2)
}

// tryClaimingTwice: a second claim in one transaction is not taken for a duplicate.
func (j joiner) tryClaimingTwice() {
	j.t.Helper()
	err := j.inTx(j.t.Context(), func(tx sqlTx) error {
		_, err := j.claim(tx, "m")
		require.NoError(j.t, err)
		outcome, err := j.claim(tx, "m")
		require.Zero(j.t, outcome)
		return err
	})
	require.ErrorIs(j.t, err, txidem.ErrAlreadyClaimed)
	j.requireEffects(0)
}

// trySavepoints: a claim inside a savepoint lives and dies with it, and is the transaction's own.
func (j joiner) trySavepoints() {
	j.t.Helper()
	require.NoError(j.t, j.inTx(j.t.Context(), func(tx sqlTx) error {
		j.claimBetween(tx, "undone", `SAVEPOINT s`, `ROLLBACK TO SAVEPOINT s`)
		j.claimBetween(tx, "done", `SAVEPOINT s`, `RELEASE SAVEPOINT s`)
		_, err := j.claim(tx, "done")
		require.ErrorIs(j.t, err, txidem.ErrAlreadyClaimed)
		return nil
	}))
	require.Equal(j.t, []string{"done"}, j.recordedIDs())
	j.requireEffects(1)
	j.requireClaim(txidem.Duplicate, "done")
	j.requireClaim(txidem.Claimed, "undone")
	j.requireEffects(2)
}

func (j joiner) claimBetween(tx sqlTx, id, before, after string) {
	j.t.Helper()
	_, err := tx.ExecContext(j.t.Context(), before)
	require.NoError(j.t, err)
	outcome, err := j.claim(tx, id)
	require.NoError(j.t, err)
	require.Equal(j.t, txidem.Claimed, outcome)
	_, err = tx.ExecContext(j.t.Context(), after)
	require.NoError(j.t, err)
	j.requireLockTimeout(tx)
}

// tryCopyInFlight: a copy in flight ends the wait, whatever type the driver's errors have. When that copy fails, the
// next claim takes over.
func (j joiner) tryCopyInFlight() {
	j.t.Helper()
	h := j.hold(j.guard, "m")
	err := j.inTx(j.t.Context(), func(tx sqlTx) error {
		_, err := j.claim(tx, "m")
		return err
	})
	h.end(io.EOF)
	require.ErrorIs(j.t, err, txidem.ErrInFlight)
	require.True(j.t, txidem.Retryable(err))
	require.Equal(j.t, io.EOF, h.err)
	j.requireClaim(txidem.Claimed, "m")
	j.requireEffects(1)
}

// tryOtherIDs: an empty id and one that cannot be stored make no record and leave the transaction alone; an odd one is
// kept as it is.
func (j joiner) tryOtherIDs() {
	j.t.Helper()
	const odd = "$1 ? 'é\" {}\n"
	require.NoError(j.t, j.inTx(j.t.Context(), func(tx sqlTx) error {
		outcome, err := j.guard.ClaimSQL(j.t.Context(), tx, "")
		require.NoError(j.t, err)
		require.Equal(j.t, txidem.Unguarded, outcome)
		_, err = j.guard.ClaimSQL(j.t.Context(), tx, "\x00")
		require.ErrorIs(j.t, err, txidem.ErrInvalidID)
		_, err = j.claim(tx, odd)
		return err
	}))
	require.Equal(j.t, []string{odd}, j.recordedIDs())
	j.requireEffects(1)
}

// bun.Tx fits SQLTx by its methods, but formats queries itself and takes the arguments for its own placeholders: the
// claim fails, nothing is stored, and nothing is taken for a duplicate. Its embedded *sql.Tx is the one to hand over.
func TestClaimSQLWithBunsOwnMethods(t *testing.T) {
	t.Parallel()
	for driver, open := range sqlDrivers {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			db := w.openSQL(open)
			w.requireOutcome(txidem.Processed, "m", w.ok)
			for _, id := range []string{"m", "n"} {
				err := bun.NewDB(db, pgdialect.New()).RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
					outcome, err := w.guard.ClaimSQL(ctx, tx, id)
					require.Zero(t, outcome)
					return err
				})
				require.ErrorContains(t, err, "txidem: claim")
			}
			w.requireEffects(1)
		})
	}
}

// What the server says is found in the chain with either driver, and the next step with it.
func TestClaimSQLWithoutATable(t *testing.T) {
	t.Parallel()
	for driver, open := range sqlDrivers {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *txidem.Config) { c.Table = "nothing" })
			db := w.openSQL(open)
			err := openSQL(t, db)(t.Context(), func(tx sqlTx) error {
				_, err := w.guard.ClaimSQL(t.Context(), tx, "m")
				return err
			})
			require.ErrorIs(t, err, txidem.ErrNoTable)
			var state interface{ SQLState() string }
			require.ErrorAs(t, err, &state)
			require.Equal(t, "42P01", state.SQLState())
			var pqErr *pq.Error
			require.Equal(t, driver == "pq", errors.As(err, &pqErr), "the driver under test is the one that ran: %T", err)
		})
	}
}
