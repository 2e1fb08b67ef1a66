package pgproxy_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/pgproxy"
	"github.com/txidem/txidem-go/integration/testdb"
)

func TestMain(m *testing.M) {
	testdb.Main(m, testdb.Config{Setup: func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `CREATE TABLE notes (v text)`)
		return err
	}})
}

// stateLimit bounds the wait for a state that must come.
const stateLimit = 15 * time.Second

// world is a proxy in front of a database of its own.
type world struct {
	t      *testing.T
	proxy  *pgproxy.Proxy
	config *pgx.ConnConfig // through the proxy
	direct *pgx.Conn
}

func newWorld(t *testing.T) *world {
	t.Helper()
	config, err := pgx.ParseConfig(testdb.New(t).DSN())
	require.NoError(t, err)
	direct, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = direct.Close(context.WithoutCancel(t.Context())) })
	proxy, err := pgproxy.Start(pgconn.NetworkAddress(config.Host, config.Port))
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	through := config.Copy()
	through.Host, through.Port = proxy.Addr().IP.String(), uint16(proxy.Addr().Port)
	through.TLSConfig, through.Fallbacks = nil, nil
	return &world{t: t, proxy: proxy, config: through, direct: direct}
}

func (w *world) connect() *pgx.Conn {
	w.t.Helper()
	conn, err := pgx.ConnectConfig(w.t.Context(), w.config)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(w.t.Context())) })
	return conn
}

// note writes one row by the simple protocol: one Query, and CommandComplete and ReadyForQuery for an answer.
func note(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `INSERT INTO notes VALUES ('x')`, pgx.QueryExecModeSimpleProtocol)
	return err
}

// requireNotes waits until so many rows are there and the session of pid has gone.
func (w *world) requireNotes(n int, pid uint32) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		var gone bool
		require.NoError(w.t, w.direct.QueryRow(w.t.Context(),
			`SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, pid).Scan(&gone))
		return gone
	}, stateLimit, 5*time.Millisecond, "the session is cut")
	var found int
	require.NoError(w.t, w.direct.QueryRow(w.t.Context(), `SELECT count(*) FROM notes`).Scan(&found))
	require.Equal(w.t, n, found)
}

// at is a hook with one verdict for one message.
func at(d pgproxy.Direction, index int, v pgproxy.Verdict) pgproxy.Hook {
	return func(m pgproxy.Message) pgproxy.Verdict {
		if m.Direction == d && m.Index == index {
			return v
		}
		return pgproxy.Pass
	}
}

// The start and the end of a connection are not counted, and neither is what comes before Observe or after it.
func TestObserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.connect(), w.connect()
	require.NoError(t, note(t.Context(), first))

	var mu sync.Mutex
	var seen [2][]string
	var conns []int
	w.proxy.Observe(func(m pgproxy.Message) pgproxy.Verdict {
		mu.Lock()
		defer mu.Unlock()
		seen[m.Direction] = append(seen[m.Direction], m.String())
		if m.Direction == pgproxy.ToServer {
			conns = append(conns, m.Conn)
		}
		require.Equal(t, []uint32{first.PgConn().PID(), second.PgConn().PID()}[m.Conn], m.Process)
		return pgproxy.Pass
	})
	require.NoError(t, note(t.Context(), second))
	require.NoError(t, w.connect().Close(t.Context()))
	require.NoError(t, note(t.Context(), first))
	w.proxy.Observe(nil)
	require.NoError(t, note(t.Context(), second))

	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []string{"→ 0 Query", "→ 1 Query"}, seen[pgproxy.ToServer])
	require.Equal(t, []int{1, 0}, conns)
	require.Equal(t, []string{
		"← 0 CommandComplete", "← 1 ReadyForQuery", "← 2 CommandComplete", "← 3 ReadyForQuery",
	}, seen[pgproxy.ToClient])
}

// noteOnce is note without what pgconn does about a connection that broke: its cancel request could reach the server
// while it carries the statement out.
func noteOnce(conn *pgx.Conn) error {
	raw, err := conn.PgConn().Hijack()
	if err != nil {
		return err
	}
	defer raw.Conn.Close()
	raw.Frontend.Send(&pgproto3.Query{String: `INSERT INTO notes VALUES ('x')`})
	if err := raw.Frontend.Flush(); err != nil {
		return err
	}
	for {
		msg, err := raw.Frontend.Receive()
		if _, done := msg.(*pgproto3.ReadyForQuery); err != nil || done {
			return err
		}
	}
}

// Whether the server got the request is what the verdicts differ in.
func TestCuts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		hook    pgproxy.Hook
		rows    int
		success bool
	}{
		{"request dropped", at(pgproxy.ToServer, 0, pgproxy.Drop), 0, false},
		{"request halved", at(pgproxy.ToServer, 0, pgproxy.CutHalfway), 0, false},
		{"request forwarded", at(pgproxy.ToServer, 0, pgproxy.Cut), 1, false},
		{"answer dropped", at(pgproxy.ToClient, 0, pgproxy.Drop), 1, false},
		{"answer halved", at(pgproxy.ToClient, 0, pgproxy.CutHalfway), 1, false},
		{"half an answer forwarded", at(pgproxy.ToClient, 0, pgproxy.Cut), 1, false},
		{"whole answer forwarded", at(pgproxy.ToClient, 1, pgproxy.Cut), 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			conn := w.connect()
			pid := conn.PgConn().PID()
			w.proxy.Observe(c.hook)
			err := noteOnce(conn)
			require.Equal(t, c.success, err == nil, "%v", err)
			w.requireNotes(c.rows, pid)
			require.NoError(t, note(t.Context(), w.connect()), "the proxy goes on")
		})
	}
}

// A swallowed request leaves both sides open: the client waits, and so does the server, until Release.
func TestSwallow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn := w.connect()
	swallowed := make(chan struct{})
	w.proxy.Observe(func(m pgproxy.Message) pgproxy.Verdict {
		if m.Process != conn.PgConn().PID() {
			return pgproxy.Pass
		}
		close(swallowed)
		return pgproxy.Swallow
	})
	failed := make(chan error, 1)
	go func() { failed <- note(context.WithoutCancel(t.Context()), conn) }()
	<-swallowed
	require.NoError(t, note(t.Context(), w.connect()), "other connections go on")
	select {
	case err := <-failed:
		require.FailNow(t, "the client did not wait", "%v", err)
	default:
	}
	w.proxy.Release()
	require.Error(t, <-failed)
	w.requireNotes(1, conn.PgConn().PID())
}

// A message that a hook holds reaches the server after its client has gone.
func TestHeldMessageOutlivesItsClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn := w.connect()
	held, release := make(chan struct{}), make(chan struct{})
	w.proxy.Observe(func(m pgproxy.Message) pgproxy.Verdict {
		if m.Direction == pgproxy.ToServer && m.Index == 0 {
			close(held)
			<-release
		}
		return pgproxy.Pass
	})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { failed <- note(ctx, conn) }()
	<-held
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	<-conn.PgConn().CleanupDone()
	close(release)
	w.requireNotes(1, conn.PgConn().PID())
}

// A cancel request comes on a connection of its own and passes.
func TestCancelRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn := w.connect()
	w.proxy.Observe(func(pgproxy.Message) pgproxy.Verdict { return pgproxy.Pass })
	failed := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.WithoutCancel(t.Context()), `SELECT pg_sleep(60)`)
		failed <- err
	}()
	require.Eventually(t, func() bool {
		var asleep bool
		require.NoError(t, w.direct.QueryRow(t.Context(),
			`SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep')`,
			conn.PgConn().PID()).Scan(&asleep))
		return asleep
	}, stateLimit, 5*time.Millisecond)
	require.NoError(t, conn.PgConn().CancelRequest(t.Context()))
	var pgErr *pgconn.PgError
	require.ErrorAs(t, <-failed, &pgErr)
	require.Equal(t, "57014", pgErr.Code)
}

// A client that asks for TLS is told that there is none, and what is not the protocol ends the connection.
func TestStartOfAConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn, err := net.Dial("tcp", w.proxy.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47})
	require.NoError(t, err)
	answer := make([]byte, 1)
	_, err = conn.Read(answer)
	require.NoError(t, err)
	require.Equal(t, []byte{'N'}, answer)
	_, err = conn.Write(bytes.Repeat([]byte{0xff}, 16))
	require.NoError(t, err)
	n, err := conn.Read(answer)
	require.Error(t, err)
	require.Zero(t, n)
}

// A proxy without a server behind it closes what it accepts, and Close ends what is open.
func TestCloseAndNoServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn := w.connect()
	w.proxy.Close()
	require.Error(t, note(t.Context(), conn))
	_, err := pgx.ConnectConfig(t.Context(), w.config)
	require.Error(t, err)

	nowhere, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, nowhere.Close())
	proxy, err := pgproxy.Start("tcp", nowhere.Addr().String())
	require.NoError(t, err)
	defer proxy.Close()
	client, err := net.Dial("tcp", proxy.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	_, err = client.Read(make([]byte, 1))
	require.Error(t, err)
}
