package faults

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/pgserver"
	"github.com/txidem/txidem-go/txidem"
)

const (
	soakWorkers = 10 // more than the pool has connections
	soakConns   = 8
	soakCopies  = 0.3 // the share of messages that are sent twice
)

// soak is a long run: messages, workers, and faults all along.
type soak struct {
	t       *testing.T
	server  *pgserver.Local
	wire    *wire
	pool    *pgxpool.Pool
	guard   *txidem.Guard
	q       *queue
	y       *tally
	results *results
	workers sync.WaitGroup
}

func newSoak(t *testing.T, messages int) *soak {
	t.Helper()
	s := &soak{
		t: t, server: startLocal(t, nil), wire: newWire(),
		q: newQueue(messages, soakCopies), y: &tally{}, results: newResults(),
	}
	prepare(t, s.server.DSN())
	s.pool = newPool(t, s.server.DSN(), s.wire.through, func(c *pgxpool.Config) {
		c.MaxConns = soakConns
		c.ConnConfig.RuntimeParams["application_name"] = soaked
	})
	s.guard = newGuard(t, s.pool, func(c *txidem.Config) { c.Observer = s.y.observe })
	t.Cleanup(func() {
		s.q.stop()
		s.workers.Wait()
	})
	return s
}

func (s *soak) start() {
	for range soakWorkers {
		s.workers.Go(func() {
			for {
				message, ok := s.q.take()
				if !ok {
					return
				}
				s.q.settle(message, s.deliver(messageID(message)))
			}
		})
	}
}

// deliver delivers one message to a handler that may have a fault of its own. The panic of a handler is an error to the
// broker.
func (s *soak) deliver(id string) (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	h := &soakHandler{id: id, fault: drawHandlerFault(), cancel: cancel}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errPanicked, r)
		}
		s.results.add(h, err)
	}()
	_, err = s.guard.Process(ctx, id, h.handle)
	return err
}

// level is what must not grow.
type level struct {
	sessions   int // of the workers, as the server counts them
	sockets    int // as the client counts them
	goroutines int
	heap       uint64
}

func (l level) String() string {
	return fmt.Sprintf("%d sessions, %d sockets, %d goroutines, %.1f MB of heap",
		l.sessions, l.sockets, l.goroutines, float64(l.heap)/(1<<20))
}

// measure holds the queue, waits until every delivery is over and the server has noticed every broken connection, and
// looks.
func (s *soak) measure() level {
	s.t.Helper()
	s.q.pause()
	defer s.q.resume()
	const sessions = `SELECT count(*) FROM pg_stat_activity WHERE application_name = '` + soaked + `'`
	side := connect(s.t, s.server.DSN())
	defer side.Close(s.t.Context())
	waitFor(s.t, side, `SELECT (`+sessions+`) <= $1`, soakConns)
	var l level
	require.NoError(s.t, side.QueryRow(s.t.Context(), sessions).Scan(&l.sessions))
	require.Zero(s.t, s.pool.Stat().AcquiredConns(), "connections that were not released")
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	l.sockets, l.goroutines, l.heap = s.wire.open(), runtime.NumGoroutine(), m.HeapAlloc
	return l
}

// requireFlat asserts that nothing has grown. The heap may double: what is caught here grows with every message.
func requireFlat(t *testing.T, early, late level) {
	t.Helper()
	require.LessOrEqual(t, late.sessions, soakConns, "sessions")
	require.LessOrEqual(t, late.sockets, soakConns, "sockets")
	require.LessOrEqual(t, late.goroutines, 2*early.goroutines, "goroutines")
	require.LessOrEqual(t, late.heap, 2*early.heap+4<<20, "bytes of heap")
}

// A long run under faults of every kind, from the handler's own to the death of the server: every message is acked and
// has its effect once, and neither connections nor memory grow.
func TestSoak(t *testing.T) {
	messages := size(t, envSoak, 3000)
	s := newSoak(t, messages)
	began := time.Now()
	s.start()

	f := newFaultSource(s)
	f.until(messages / 5)
	early := s.measure()
	f.until(messages)
	s.workers.Wait()
	took := time.Since(began)
	late := s.measure()

	acked, deliveries := s.q.counts()
	t.Logf("soak: %d messages, %d deliveries in %v: %d processed, %d duplicate, %d failed, %d ran the handler again",
		acked, deliveries, took.Round(time.Second),
		s.y.processed.Load(), s.y.duplicates.Load(), s.y.errors.Load(), s.y.again.Load())
	t.Logf("faults injected: %v", f)
	t.Logf("handlers at fault: %v", s.results.faults)
	t.Logf("deliveries that failed: %v", s.results.failed)
	t.Logf("after a fifth: %v; at the end: %v", early, late)

	f.require()
	require.Equal(t, messages, acked)
	requireFlat(t, early, late)
	requireExactlyOnce(t, soaked, s.pool, s.q.ackedIDs())
}
