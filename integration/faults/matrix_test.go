package faults

import (
	"flag"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/pgproxy"
	"github.com/txidem/txidem-go/integration/testdb"
)

// connState is what the connection of a delivery has done before: its messages differ.
type connState string

const (
	warm connState = "warm" // it has run the same statements: they are prepared
	cold connState = "cold" // it is new: every statement is prepared first
)

func (c connState) String() string { return string(c) }

// group is a part of the matrix whose deliveries exchange the same messages.
type group struct {
	mode   mode
	conn   connState
	script script
	db     *testdb.DB
	direct *pgxpool.Pool // past the proxies, to look at the server
}

// extent is how much of the matrix ran.
type extent struct{ exchanges, messages, cells atomic.Int64 }

// The crash matrix. For every way to use the library and every handler one clean delivery is recorded message by message,
// on a warm connection, and in some modes on a new one as well. Then, for every message of it and every kind of fault, one
// delivery is broken there, and the message is redelivered until it is acked.
//
// It runs before the parallel tests of the package: its deadlines are short.
func TestMatrix(t *testing.T) {
	slots := make(chan struct{}, groupsAtOnce)
	var ran extent
	together(t, modes, mode.String, func(t *testing.T, m mode) {
		together(t, m.conns(), connState.String, func(t *testing.T, conn connState) {
			together(t, m.scripts(conn), script.String, func(t *testing.T, s script) {
				slots <- struct{}{}
				defer func() { <-slots }()
				group{mode: m, conn: conn, script: s}.run(t, &ran)
			})
		})
	})
	if selected() >= matrixLevel {
		return
	}
	messages, cells := ran.messages.Load(), ran.cells.Load()
	require.Equal(t, messages*int64(len(faultKinds)), cells, "cells: one for each message and fault")
	report.note("crash matrix: %d messages on the wire of %d clean exchanges × %d faults = %d cells",
		messages, ran.exchanges.Load(), len(faultKinds), cells)
}

// The levels of subtests below TestMatrix: mode, connection and script make an exchange, then come fault and message.
const (
	matrixLevel  = 4 // -run names no fault: all of them run
	messageLevel = 5 // -run names no message
)

// selected returns how many levels of subtests -run selects from.
func selected() int { return strings.Count(flag.Lookup("test.run").Value.String(), "/") }

// groupsAtOnce bounds the load: a group has a line for each kind of fault, and most of their time is waiting, for the
// server's disk or for a deadline.
const groupsAtOnce = 4

// together runs a subtest for each item, all at once, whatever -parallel says.
func together[T any](t *testing.T, items []T, name func(T) string, run func(*testing.T, T)) {
	t.Helper()
	var running sync.WaitGroup
	for _, item := range items {
		running.Go(func() { t.Run(name(item), func(t *testing.T) { run(t, item) }) })
	}
	running.Wait()
}

// run records the exchange and breaks it everywhere, on one line for each kind of fault.
func (g group) run(t *testing.T, ran *extent) {
	g.db = testdb.New(t)
	g.direct = g.db.Pool(t, func(c *pgxpool.Config) { c.MaxConns = 4 })
	points := newLine(t, g).exchange(t)
	ran.exchanges.Add(1)
	ran.messages.Add(int64(len(points)))
	together(t, faultKinds, fault.String, func(t *testing.T, f fault) {
		ran.cells.Add(int64(newLine(t, g).breakAt(t, f, points)))
	})
}

// breakAt breaks one delivery at each of the points, and asserts that they are as many as there are messages on the wire.
func (l *line) breakAt(t *testing.T, f fault, points []point) (cells int) {
	t.Helper()
	for _, p := range points {
		t.Run(p.name, func(t *testing.T) {
			cells++
			l.cell(t, f, p)
		})
	}
	if selected() < messageLevel {
		require.Len(t, l.exchange(t), cells, "messages on the wire, and cells")
	}
	return cells
}

// exchange records the messages of a clean delivery, in the order of each direction: first what goes to the server. It
// asserts that a second delivery has the same.
func (l *line) exchange(t *testing.T) []point {
	t.Helper()
	first := l.record(t)
	require.Equal(t, names(first), names(l.record(t)), "two clean deliveries exchange the same messages")
	return first
}

func (l *line) record(t *testing.T) []point {
	t.Helper()
	l.prepare(t)
	var mu sync.Mutex
	var found [2][]point
	s := &shot{line: l, story: l.next()}
	l.proxy.Observe(func(m pgproxy.Message) pgproxy.Verdict {
		mu.Lock()
		defer mu.Unlock()
		found[m.Direction] = append(found[m.Direction], s.pointOf(m))
		return pgproxy.Pass
	})
	err := s.deliver(t.Context(), ampleTime)
	l.proxy.Observe(nil)
	require.NoError(t, err)
	l.judge(t, s, nil)
	mu.Lock()
	defer mu.Unlock()
	return append(found[pgproxy.ToServer], found[pgproxy.ToClient]...)
}

func names(points []point) string {
	var all []string
	for _, p := range points {
		all = append(all, p.name+" in "+p.where)
	}
	return strings.Join(all, "\n")
}
