package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/txidem/txidem-go/txidem"
)

// modelEnding is how a delivery of the model goes on once its handler has made its effect.
type modelEnding string

const (
	endsWell     modelEnding = "ok"
	endsInError  modelEnding = "error"
	endsInPanic  modelEnding = "panic"
	endsHiding   modelEnding = "hidden SQL error"  // a statement fails, and the handler returns nil
	endsCanceled modelEnding = "canceled"          // the context ends, and the handler returns nil
	endsCut      modelEnding = "cut"               // the connection breaks in the handler
	endsDead     modelEnding = "worker gone"       // the connection breaks, and nobody is there to go on
	endsNoCommit modelEnding = "COMMIT lost"       // the connection breaks before the server has COMMIT
	endsNoReply  modelEnding = "COMMIT reply lost" // the connection breaks after the server has committed
)

var modelEndings = []modelEnding{
	endsWell, endsInError, endsInPanic, endsHiding, endsCanceled, endsCut, endsDead, endsNoCommit, endsNoReply,
}

// commits reports whether the model has the message processed after this ending.
func (e modelEnding) commits() bool {
	return e == endsWell || e == endsCut || e == endsNoCommit || e == endsNoReply
}

// wireFault returns the fault that the wire must have injected.
func (e modelEnding) wireFault() wireFault {
	switch e {
	case endsNoCommit:
		return loseRequest
	case endsNoReply:
		return loseReply
	default:
		return noFault
	}
}

// point is where the report counts this ending.
func (e modelEnding) point() string {
	if e.wireFault() != noFault {
		return atCommit
	}
	return atHandler
}

var (
	errModel   = errors.New("the handler's own error")
	panicValue = "the handler's own panic"
)

// modelWorker is one worker: a pool, and guards that differ in how long they wait for a copy in flight. The patient one is
// for messages that nobody holds: what a broken connection has left behind may take the server a moment to clean up.
type modelWorker struct {
	pool           *pgxpool.Pool
	wire           *wire
	patient, hasty *txidem.Guard
	held           *heldDelivery // the delivery that it is in the middle of
}

func newModelWorker(t *testing.T, dsn string) *modelWorker {
	t.Helper()
	w := &modelWorker{wire: newWire()}
	w.pool = newPool(t, dsn, w.wire.through)
	w.patient = newGuard(t, w.pool, func(c *txidem.Config) { c.InFlightWait = crashStateLimit })
	w.hasty = newGuard(t, w.pool, func(c *txidem.Config) { c.InFlightWait = 30 * time.Millisecond })
	return w
}

// heldDelivery is a delivery that stays in its handler until it is told how to end.
type heldDelivery struct {
	worker *modelWorker
	id     string
	inside chan struct{} // closed when the handler has made its effect
	end    chan modelEnding
	done   chan struct{}
	cancel context.CancelFunc

	calls    int
	outcome  txidem.Outcome
	err      error
	panicked any
}

// begin starts a delivery and returns when its handler waits, or when it is over.
func (w *modelWorker) begin(g *txidem.Guard, id string) *heldDelivery {
	ctx, cancel := context.WithCancel(context.Background())
	h := &heldDelivery{
		worker: w, id: id, cancel: cancel,
		inside: make(chan struct{}), end: make(chan modelEnding, 1), done: make(chan struct{}),
	}
	go func() {
		defer close(h.done)
		defer func() { h.panicked = recover() }()
		h.outcome, h.err = g.Process(ctx, id, h.handle)
	}()
	select {
	case <-h.inside:
		w.held = h
	case <-h.done:
		cancel()
	}
	return h
}

// handle makes the effect and, the first time, waits for what is to come. A second call is txidem's retry: it succeeds.
func (h *heldDelivery) handle(ctx context.Context, tx pgx.Tx) error {
	h.calls++
	if err := transfer(ctx, tx, h.id); err != nil || h.calls > 1 {
		return err
	}
	close(h.inside)
	return h.finish(ctx, tx, <-h.end)
}

func (h *heldDelivery) finish(ctx context.Context, tx pgx.Tx, e modelEnding) error {
	switch e {
	case endsInError:
		return errModel
	case endsInPanic:
		panic(panicValue)
	case endsHiding:
		_, _ = tx.Exec(ctx, `SELECT 1/0`)
	case endsCanceled:
		h.cancel()
	case endsDead:
		h.cancel()
		breakConn(tx)
	case endsCut:
		breakConn(tx)
	default:
		h.worker.wire.arm(e.wireFault())
	}
	return nil
}

// breakConn cuts the connection of a transaction on the wire.
func breakConn(tx pgx.Tx) { tx.Conn().PgConn().Conn().(*wireConn).cut() }

// finishAs ends a delivery whose handler waits, and waits for its result.
func (h *heldDelivery) finishAs(e modelEnding) {
	h.end <- e
	<-h.done
	h.cancel()
	h.worker.held = nil
}

// requireResult asserts what an ending makes of a delivery whose handler ran.
func (h *heldDelivery) requireResult(t require.TestingT, e modelEnding) {
	switch e {
	case endsInError:
		require.Equal(t, errModel, h.err)
	case endsInPanic:
		require.Equal(t, panicValue, h.panicked)
	case endsHiding:
		require.ErrorIs(t, h.err, txidem.ErrTxAborted)
	case endsCanceled, endsDead:
		require.ErrorIs(t, h.err, context.Canceled)
	default:
		require.NoError(t, h.err)
		require.Equal(t, txidem.Processed.String(), h.outcome.String())
	}
	calls := 1
	if e == endsCut || e == endsNoCommit {
		calls = 2
	}
	require.Equal(t, calls, h.calls, "handler calls")
}

// modelState is what the model knows of one message.
type modelState struct {
	processed bool
	effects   int
	holder    *heldDelivery
}

// machine runs the commands of one check against the database and the model at once. Its messages are its own.
type machine struct {
	workers  []*modelWorker
	side     *pgxpool.Pool // looks at the database
	prefix   string
	messages map[string]*modelState
	ran      map[string]int // commands and endings, over all checks

	wrong bool // the model takes a failed message for a processed one: for the test that a wrong model is found out
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":         m.check,
		"deliver":  m.deliver,
		"hold":     m.hold,
		"end":      m.end,
		"join":     m.join,
		"forget":   m.forget,
		"seen":     m.seen,
		"remember": m.remember,
	}
}

// draw returns a worker that is free and a message.
func (m *machine) draw(t *rapid.T) (*modelWorker, string, *modelState) {
	var free []int
	for i, w := range m.workers {
		if w.held == nil {
			free = append(free, i)
		}
	}
	if len(free) == 0 {
		t.Skip("every worker is in the middle of a delivery")
	}
	w := m.workers[rapid.SampledFrom(free).Draw(t, "worker")]
	id := m.prefix + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "message")
	if m.messages[id] == nil {
		m.messages[id] = &modelState{}
	}
	return w, id, m.messages[id]
}

// guard returns the guard to use for a message: it is a matter of time only, see modelWorker.
func (w *modelWorker) guard(s *modelState) *txidem.Guard {
	if s.holder != nil {
		return w.hasty
	}
	return w.patient
}

// start begins a delivery and asserts what the model expects of its claim. It returns nil unless the handler runs.
func (m *machine) start(t *rapid.T, w *modelWorker, id string, s *modelState) *heldDelivery {
	h := w.begin(w.guard(s), id)
	switch {
	case s.holder != nil:
		require.ErrorIs(t, h.err, txidem.ErrInFlight)
	case s.processed:
		require.NoError(t, h.err)
		require.Equal(t, txidem.Duplicate.String(), h.outcome.String())
	default:
		require.Equal(t, 1, h.calls, "the handler should run, and the delivery was %v, %v", h.outcome, h.err)
		s.holder = h
		return h
	}
	require.Zero(t, h.calls, "the handler should not run")
	return nil
}

// finish ends a delivery and asserts the result.
func (m *machine) finish(t *rapid.T, h *heldDelivery, s *modelState) {
	e := rapid.SampledFrom(modelEndings).Draw(t, "ending")
	before := h.worker.wire.count(e.wireFault())
	h.finishAs(e)
	s.holder = nil
	m.ran[string(e)]++
	h.requireResult(t, e)
	if e.wireFault() != noFault {
		require.Equal(t, before+1, h.worker.wire.count(e.wireFault()), "the fault fired")
	}
	if e.commits() {
		s.processed = true
		s.effects++
	} else if m.wrong {
		s.processed = true
	}
}

// deliver is a delivery from beginning to end.
func (m *machine) deliver(t *rapid.T) {
	w, id, s := m.draw(t)
	if h := m.start(t, w, id, s); h != nil {
		m.finish(t, h, s)
	}
	m.ran["deliver"]++
}

// hold is a delivery that stays in its handler while other commands run.
func (m *machine) hold(t *rapid.T) {
	w, id, s := m.draw(t)
	m.start(t, w, id, s)
	m.ran["hold"]++
}

// end ends one of the deliveries that were held.
func (m *machine) end(t *rapid.T) {
	var busy []int
	for i, w := range m.workers {
		if w.held != nil {
			busy = append(busy, i)
		}
	}
	if len(busy) == 0 {
		t.Skip("no worker is in the middle of a delivery")
	}
	h := m.workers[rapid.SampledFrom(busy).Draw(t, "worker")].held
	m.finish(t, h, m.messages[h.id])
	m.ran["end"]++
}

// join claims in a transaction of the worker's own, which it commits or rolls back.
func (m *machine) join(t *rapid.T) {
	w, id, s := m.draw(t)
	commit := rapid.Bool().Draw(t, "commit")
	ctx := context.Background()
	tx, err := w.pool.Begin(ctx)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(ctx) }() // does nothing after Commit
	outcome, err := w.guard(s).ClaimTx(ctx, tx, id)
	switch {
	case s.holder != nil:
		require.ErrorIs(t, err, txidem.ErrInFlight)
	case s.processed:
		require.NoError(t, err)
		require.Equal(t, txidem.Duplicate, outcome)
	default:
		require.NoError(t, err)
		require.Equal(t, txidem.Claimed, outcome)
		require.NoError(t, transfer(ctx, tx, id))
		if commit {
			require.NoError(t, tx.Commit(ctx))
			s.processed = true
			s.effects++
		}
	}
	m.ran["join"]++
}

func (m *machine) forget(t *rapid.T) {
	w, id, s := m.draw(t)
	err := w.guard(s).Forget(context.Background(), id)
	if s.holder != nil {
		require.ErrorIs(t, err, txidem.ErrInFlight)
	} else {
		require.NoError(t, err)
		s.processed = false
	}
	m.ran["forget"]++
}

func (m *machine) remember(t *rapid.T) {
	w, id, s := m.draw(t)
	err := w.guard(s).Remember(context.Background(), id)
	if s.holder != nil {
		require.ErrorIs(t, err, txidem.ErrInFlight)
	} else {
		require.NoError(t, err)
		s.processed = true
	}
	m.ran["remember"]++
}

// seen asks for a message; one that is being processed is not seen yet.
func (m *machine) seen(t *rapid.T) {
	w, id, s := m.draw(t)
	seen, err := w.guard(s).Seen(context.Background(), id)
	require.NoError(t, err)
	require.Equal(t, s.processed, seen)
	m.ran["seen"]++
}

// check compares what the database shows with the model.
func (m *machine) check(t *rapid.T) {
	for id, s := range m.messages {
		var debits, credits, records int
		require.NoError(t, m.side.QueryRow(context.Background(), `SELECT (SELECT count(*) FROM debits WHERE message_id = $1),
			(SELECT count(*) FROM credits WHERE message_id = $1), (SELECT count(*) FROM txidem_messages WHERE message_id = $1)`,
			id).Scan(&debits, &credits, &records))
		want := fmt.Sprint(s.effects, s.effects, s.processed)
		require.Equal(t, want, fmt.Sprint(debits, credits, records == 1), "debits, credits and record of %s", id)
	}
}

// close lets every delivery end that a check has left open, its failure included.
func (m *machine) close() {
	for _, w := range m.workers {
		if w.held != nil {
			w.held.finishAs(endsInError)
		}
	}
}
