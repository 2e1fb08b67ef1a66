package faults

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/pgserver"
	"github.com/txidem/txidem-go/txidem"
)

// outageTime is how long the database is away.
const outageTime = 2 * time.Second

// outage kills a server once and starts it again two seconds later.
type outage struct {
	t      *testing.T
	server *pgserver.Local
	addr   string
	down   time.Time
	lasted time.Duration
	back   chan error // has the result of the restart, once there was an outage
}

func newOutage(t *testing.T, server *pgserver.Local) *outage {
	t.Helper()
	config, err := pgx.ParseConfig(server.DSN())
	require.NoError(t, err)
	addr := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	return &outage{t: t, server: server, addr: addr, back: make(chan error, 1)}
}

// begin returns when the server is gone. From then on the time runs.
func (o *outage) begin() {
	o.server.Kill()
	o.down = time.Now()
	_, err := net.Dial("tcp", o.addr)
	require.Error(o.t, err, "the server takes connections after the kill")
	time.AfterFunc(outageTime, func() {
		o.lasted = time.Since(o.down)
		o.back <- o.server.Restart(context.WithoutCancel(o.t.Context()))
	})
}

// beginIn is begin in a handler, and returns when the session of its transaction is gone too. The sessions of a server that
// was killed end by themselves, a moment later, and one that finds a COMMIT to read in that moment still carries it out.
func (o *outage) beginIn(tx pgx.Tx) error {
	o.begin()
	return tx.Conn().PgConn().Conn().(*wireConn).awaitEnd(crashStateLimit)
}

// require asserts that there was an outage, and that it is over.
func (o *outage) require() {
	o.t.Helper()
	require.False(o.t, o.down.IsZero(), "the outage did not happen")
	require.NoError(o.t, <-o.back)
	require.GreaterOrEqual(o.t, o.lasted, outageTime)
}

// gate is a deferred trigger on credits: COMMIT runs it, and it stays there for as long as the test holds an advisory lock.
// It sleeps instead of waiting for the lock, which the death of the test's own session would hand to it.
const (
	closeGate = `SELECT pg_advisory_lock(4711)`
	gate      = `
CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NOT pg_try_advisory_xact_lock_shared(4711) THEN
    PERFORM pg_sleep(3600);
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER gate AFTER INSERT ON credits DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION wait_at_gate()`
	dropGate = `DROP FUNCTION IF EXISTS wait_at_gate() CASCADE`
)

// A two-second outage of the database in the middle of a delivery: the broker sees one successful delivery, no error. The
// server is killed at each of the moments that differ in what is stored when it is back, and in who can know it.
func TestTwoSecondOutage(t *testing.T) {
	server := startLocal(t, nil)
	prepare(t, server.DSN())
	for _, test := range []struct {
		name  string
		point string
		calls int // how often the handler runs
		run   func(t *testing.T, o *outage, id string) (calls int, outcome txidem.Outcome, err error)
	}{
		{"inside the handler", atHandler, 2, outageInsideHandler},
		{"between the handler and COMMIT", atCommit, 2, outageBeforeCommit},
		{"while COMMIT runs, before it is stored", atCommit, 2, outageInsideCommit},
		{"while COMMIT runs, after it is stored", atCommit, 1, outageAfterCommit},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := newOutage(t, server)
			calls, outcome, err := test.run(t, o, test.name)
			o.require()
			report.injected(transactional, "outage of two seconds", test.point, 1)
			require.NoError(t, err)
			require.Equal(t, txidem.Processed.String(), outcome.String())
			require.Equal(t, test.calls, calls, "handler calls")

			pool := newPool(t, server.DSN())
			g := newGuard(t, pool)
			outcome, err = g.Process(t.Context(), test.name, transferOf(test.name))
			require.NoError(t, err)
			require.Equal(t, txidem.Duplicate.String(), outcome.String(), "the redelivery")
			requireOneEffect(t, pool, test.name)
		})
	}
}

func transferOf(id string) txidem.Handler {
	return func(ctx context.Context, tx pgx.Tx) error { return transfer(ctx, tx, id) }
}

// requireOneEffect asserts that one message has one whole effect and its record.
func requireOneEffect(t *testing.T, pool *pgxpool.Pool, id string) {
	t.Helper()
	a, err := readAccount(t.Context(), pool)
	require.NoError(t, err)
	require.Equal(t, []int{1, 1, 1}, []int{a.debits[id], a.credits[id], a.records[id]}, "debits, credits, records")
}

// The handler has made half its effect, and its next statement meets a dead connection.
func outageInsideHandler(t *testing.T, o *outage, id string) (calls int, outcome txidem.Outcome, err error) {
	g := newGuard(t, newPool(t, o.server.DSN(), newWire().through))
	outcome, err = g.Process(t.Context(), id, func(ctx context.Context, tx pgx.Tx) error {
		calls++
		if err := debit(ctx, tx, id); err != nil {
			return err
		}
		if calls == 1 {
			if err := o.beginIn(tx); err != nil {
				return err
			}
		}
		return credit(ctx, tx, id)
	})
	return calls, outcome, err
}

// The handler has succeeded, and COMMIT is the first to meet the dead connection.
func outageBeforeCommit(t *testing.T, o *outage, id string) (calls int, outcome txidem.Outcome, err error) {
	g := newGuard(t, newPool(t, o.server.DSN(), newWire().through))
	outcome, err = g.Process(t.Context(), id, func(ctx context.Context, tx pgx.Tx) error {
		calls++
		if err := transfer(ctx, tx, id); err != nil || calls > 1 {
			return err
		}
		return o.beginIn(tx)
	})
	return calls, outcome, err
}

// COMMIT waits in a deferred trigger when the server dies.
func outageInsideCommit(t *testing.T, o *outage, id string) (calls int, outcome txidem.Outcome, err error) {
	side := connect(t, o.server.DSN())
	for _, sql := range []string{gate, closeGate} {
		_, err := side.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	defer o.restore(dropGate)
	return outageDuringCommit(t, o, id, side, `wait_event = 'PgSleep'`)
}

// COMMIT is stored and waits for a standby that does not exist when the server dies.
func outageAfterCommit(t *testing.T, o *outage, id string) (calls int, outcome txidem.Outcome, err error) {
	side := connect(t, o.server.DSN())
	alterSystem(t, side, `SET synchronous_standby_names = 'nobody'`)
	defer o.restore(`ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`)
	return outageDuringCommit(t, o, id, side, `wait_event = 'SyncRep'`)
}

// outageDuringCommit delivers, waits until a session waits as said, and begins the outage.
func outageDuringCommit(
	t *testing.T, o *outage, id string, side *pgx.Conn, waits string,
) (calls int, outcome txidem.Outcome, err error) {
	g := newGuard(t, newPool(t, o.server.DSN()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		outcome, err = g.Process(context.WithoutCancel(t.Context()), id, func(ctx context.Context, tx pgx.Tx) error {
			calls++
			return transfer(ctx, tx, id)
		})
	}()
	waitFor(t, side, `SELECT count(*) = 1 FROM pg_stat_activity WHERE `+waits)
	o.begin()
	<-done
	return calls, outcome, err
}

// restore runs statements on the server once it is back.
func (o *outage) restore(statements ...string) {
	o.t.Helper()
	conn := connect(o.t, o.server.DSN())
	for _, sql := range statements {
		_, err := conn.Exec(o.t.Context(), sql)
		require.NoError(o.t, err)
	}
}

// alterSystem changes a setting and waits until the server has taken it.
func alterSystem(t *testing.T, conn *pgx.Conn, change string) {
	t.Helper()
	var before time.Time
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT pg_conf_load_time()`).Scan(&before))
	_, err := conn.Exec(t.Context(), `ALTER SYSTEM `+change)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `SELECT pg_reload_conf()`)
	require.NoError(t, err)
	waitFor(t, conn, `SELECT pg_conf_load_time() > $1`, before)
}
