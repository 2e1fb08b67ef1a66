package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

const soaked = "soak"

// The faults that come from outside the handler.
const (
	faultTerminate = "session terminated"
	faultCancel    = "statement canceled"
	faultCut       = "connection cut"
	faultRequest   = "COMMIT lost"
	faultReply     = "COMMIT reply lost"
	faultKill      = "server killed"
	faultCrash     = "session killed" // by SIGKILL: the server ends all sessions and recovers
)

// messagesPerFault is how many messages are acked between two faults, and faultsPerKill how many faults there are for
// each crash of the server.
const (
	messagesPerFault = 25
	faultsPerKill    = 50
)

// faultSource injects faults as the run goes on. It is used by one goroutine.
type faultSource struct {
	s     *soak
	side  *pgx.Conn
	n     int
	fired map[string]int
}

func newFaultSource(s *soak) *faultSource {
	s.t.Helper()
	f := &faultSource{s: s, fired: map[string]int{}}
	f.connect()
	s.t.Cleanup(func() { _ = f.side.Close(context.WithoutCancel(s.t.Context())) })
	return f
}

// connect gets a connection for the faults. The one before it, if any, died with the server, and is not kept: what the
// test holds on to would count as growth.
func (f *faultSource) connect() {
	f.s.t.Helper()
	var err error
	f.side, err = pgx.Connect(f.s.t.Context(), f.s.server.DSN())
	require.NoError(f.s.t, err)
}

// until injects faults until so many messages are acked.
func (f *faultSource) until(acked int) {
	f.s.t.Helper()
	for {
		now, _ := f.s.q.counts()
		if now >= acked {
			return
		}
		f.inject()
		f.s.q.waitAcked(min(acked, now+messagesPerFault))
	}
}

// inject lets the next kind of fault happen.
func (f *faultSource) inject() {
	f.s.t.Helper()
	f.n++
	switch f.n % (2 * faultsPerKill) {
	case faultsPerKill:
		f.kill()
		return
	case 0:
		f.crash()
		return
	}
	switch kinds := []string{faultTerminate, faultCancel, faultCut, faultRequest, faultReply}; kinds[f.n%len(kinds)] {
	case faultTerminate:
		f.signal(faultTerminate, "pg_terminate_backend")
	case faultCancel:
		f.signal(faultCancel, "pg_cancel_backend")
	case faultCut:
		if f.s.wire.cutOne() {
			f.fired[faultCut]++
		}
	case faultRequest:
		f.s.wire.arm(loseRequest)
	case faultReply:
		f.s.wire.arm(loseReply)
	}
}

// signal ends a session, or the statement of one, that has a transaction open, where there is one.
func (f *faultSource) signal(kind, function string) {
	f.s.t.Helper()
	tag, err := f.side.Exec(f.s.t.Context(), `SELECT `+function+`(pid) FROM (SELECT pid FROM pg_stat_activity
		WHERE application_name = $1
		ORDER BY xact_start IS NULL, random() LIMIT 1) AS victim`, soaked)
	require.NoError(f.s.t, err)
	f.fired[kind] += int(tag.RowsAffected())
}

// kill kills the server and starts it again.
func (f *faultSource) kill() {
	f.s.t.Helper()
	f.s.server.Kill()
	require.NoError(f.s.t, f.s.server.Restart(f.s.t.Context()))
	f.fired[faultKill]++
	f.connect()
}

// crash kills a session of the workers with SIGKILL. The server takes that for a corrupted memory: it ends every session
// and starts anew by itself.
func (f *faultSource) crash() {
	f.s.t.Helper()
	ctx := f.s.t.Context()
	var pid int
	require.NoError(f.s.t, f.side.QueryRow(ctx, `SELECT pid FROM pg_stat_activity
		WHERE application_name = $1 ORDER BY xact_start IS NULL LIMIT 1`, soaked).Scan(&pid))
	process, err := os.FindProcess(pid)
	require.NoError(f.s.t, err)
	require.NoError(f.s.t, process.Kill())
	require.Eventually(f.s.t, func() bool { return f.side.Ping(ctx) != nil }, crashStateLimit, pollEvery,
		"the server did not crash")
	require.Eventually(f.s.t, func() bool {
		conn, err := pgx.Connect(ctx, f.s.server.DSN())
		if err == nil {
			f.side = conn
		}
		return err == nil
	}, crashStateLimit, pollEvery, "the server did not recover")
	f.fired[faultCrash]++
}

// require reports the faults and asserts that each kind of them fired.
func (f *faultSource) require() {
	f.s.t.Helper()
	f.fired[faultRequest], f.fired[faultReply] = f.s.wire.count(loseRequest), f.s.wire.count(loseReply)
	for _, kind := range []string{faultTerminate, faultCancel, faultCut, faultRequest, faultReply, faultKill, faultCrash} {
		require.Positive(f.s.t, f.fired[kind], kind)
		report.injected(transactional, soaked, underLoad, f.fired[kind])
	}
	for kind, n := range f.s.results.faults {
		require.Positive(f.s.t, n, kind)
		report.injected(transactional, soaked, atHandler, n)
	}
}

func (f *faultSource) String() string {
	f.fired[faultRequest], f.fired[faultReply] = f.s.wire.count(loseRequest), f.s.wire.count(loseReply)
	return counted(f.fired)
}

// counted renders counts, by name.
func counted(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}

// handlerFault is what goes wrong in a handler by itself.
type handlerFault string

const (
	handlerFine     handlerFault = ""
	handlerError    handlerFault = "error"
	handlerPanic    handlerFault = "panic"
	handlerHides    handlerFault = "hidden SQL error"
	handlerCanceled handlerFault = "context canceled"
	handlerConflict handlerFault = "serialization failure"
	handlerEnds     handlerFault = "raw ROLLBACK"
)

// drawHandlerFault lets one handler in ten fail.
func drawHandlerFault() handlerFault {
	faults := []handlerFault{handlerError, handlerPanic, handlerHides, handlerCanceled, handlerConflict, handlerEnds}
	if rand.IntN(10) > 0 {
		return handlerFine
	}
	return faults[rand.IntN(len(faults))]
}

// soakHandler is the handler of one delivery. Its fault happens in its first call, after its effect.
type soakHandler struct {
	id     string
	fault  handlerFault
	cancel context.CancelFunc
	calls  int
	fired  bool
}

func (h *soakHandler) handle(ctx context.Context, tx pgx.Tx) error {
	h.calls++
	if err := transfer(ctx, tx, h.id); err != nil || h.calls > 1 {
		return err
	}
	h.fired = h.fault != handlerFine
	switch h.fault {
	case handlerError:
		return errModel
	case handlerPanic:
		panic(panicValue)
	case handlerHides:
		_, _ = tx.Exec(ctx, `SELECT 1/0`)
	case handlerCanceled:
		h.cancel()
	case handlerConflict:
		return fmt.Errorf("the handler's own: %w", &pgconn.PgError{Severity: "ERROR", Code: "40001"})
	case handlerEnds:
		_, _ = tx.Conn().Exec(ctx, `ROLLBACK`)
	default:
	}
	return nil
}

var errPanicked = errors.New("the handler panicked")

// results counts the faults of handlers and the errors of deliveries. It is safe for concurrent use.
type results struct {
	mu     sync.Mutex
	faults countedMap
	failed countedMap
}

// countedMap prints as its counts.
type countedMap map[string]int

func (m countedMap) String() string { return counted(m) }

func newResults() *results { return &results{faults: countedMap{}, failed: countedMap{}} }

func (r *results) add(h *soakHandler, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.fired {
		r.faults[string(h.fault)]++
	}
	if err != nil {
		r.failed[kindOf(err)]++
	}
}

// kindOf names an error of a delivery.
func kindOf(err error) string {
	var pgErr *pgconn.PgError
	switch {
	case errors.Is(err, errModel):
		return "handler's error"
	case errors.Is(err, errPanicked):
		return "panic"
	case errors.Is(err, txidem.ErrCommitUnknown):
		return "ErrCommitUnknown"
	case errors.Is(err, txidem.ErrInFlight):
		return "ErrInFlight"
	case errors.Is(err, txidem.ErrTxAborted):
		return "ErrTxAborted"
	case errors.Is(err, txidem.ErrTxControl):
		return "ErrTxControl"
	case errors.Is(err, context.Canceled):
		return "context canceled"
	case errors.As(err, &pgErr):
		return "SQLSTATE " + pgErr.Code
	default:
		return "other: " + err.Error()
	}
}
