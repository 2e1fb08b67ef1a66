package faults

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/txidem/txidem-go/integration/pgproxy"
)

// fault is a way to break a delivery at a message.
type fault struct {
	name string

	// deadline gives the delivery that is to be broken a deadline, which the fault needs.
	deadline bool

	// strike runs while the message is held, and decides what becomes of it. An error says that the fault did not come
	// about.
	strike func(*shot, pgproxy.Message) (pgproxy.Verdict, error)
}

var faultKinds = []fault{
	{name: "drop before forwarding", strike: always(pgproxy.Drop)},
	{name: "forward, then cut", strike: always(pgproxy.Cut)},
	{name: "cut half-way", strike: always(pgproxy.CutHalfway)},
	{name: "black hole until the deadline", deadline: true, strike: always(pgproxy.Swallow)},
	{name: "delay past the deadline", deadline: true, strike: (*shot).delay},
	{name: "pg_terminate_backend", strike: (*shot).terminate},
	{name: "cancel of the context", strike: (*shot).cancel},
}

func (f fault) String() string { return f.name }

func always(v pgproxy.Verdict) func(*shot, pgproxy.Message) (pgproxy.Verdict, error) {
	return func(*shot, pgproxy.Message) (pgproxy.Verdict, error) { return v, nil }
}

const (
	firstDeadline = 200 * time.Millisecond // of a delivery that is to be broken by a fault that needs one
	lateness      = 30 * time.Millisecond  // by which a delayed message comes after the deadline
	ampleTime     = 60 * time.Second       // for every other delivery: a failure, not a wait
)

// shot is one fault that is to fire at one message, once.
type shot struct {
	line  *line
	story *story
	fault fault
	at    point

	mu    sync.Mutex
	ended <-chan struct{}    // closed when the context of the running delivery ends
	stop  context.CancelFunc // cancels it
	fired bool
	late  bool  // the deadline came before the message did: the machine was too slow, and the shot is off
	err   error // why the fault did not come about

	striking sync.WaitGroup
}

// begin makes the context of the next delivery.
func (s *shot) begin(ctx context.Context, deadline time.Duration) (context.Context, context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := ampleTime
	if s.fault.deadline && !s.fired && !s.late {
		limit = deadline
	}
	ctx, stop := context.WithTimeout(ctx, limit)
	s.ended, s.stop = ctx.Done(), stop
	return ctx, stop
}

// hook is the proxy's: it fires at the message that the shot is for.
func (s *shot) hook(m pgproxy.Message) pgproxy.Verdict {
	if m.Direction != s.at.direction || m.Index != s.at.index || !s.mark(m) {
		return pgproxy.Pass
	}
	defer s.striking.Done()
	verdict, err := s.fault.strike(s, m)
	if err != nil {
		s.fail(err)
	}
	return verdict
}

// mark notes that the shot has fired, and whether at the message that it was meant for. It reports false when the shot
// is off.
func (s *shot) mark(m pgproxy.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.overdue(); s.late {
		return false
	}
	s.striking.Add(1)
	s.fired = true
	if p := s.pointOf(m); p != s.at {
		s.err = fmt.Errorf("the message there is %s in %s this time, not in %s", p.name, p.where, s.at.where)
	}
	return true
}

// end is told when a delivery is over, and before its context is stopped.
func (s *shot) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overdue()
}

// overdue calls the shot off when the deadline of the delivery is over: what is sent now is the delivery's end, and not
// what it would have been. The caller holds the lock.
func (s *shot) overdue() {
	select {
	case <-s.ended:
		s.late = s.late || !s.fired
	default:
	}
}

func (s *shot) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// result returns whether the fault fired, and why it did not come about, once it is over.
func (s *shot) result() (fired bool, err error) {
	s.striking.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fired, s.err
}

func (s *shot) delivery() (ended <-chan struct{}, stop context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended, s.stop
}

// delay holds the message until the deadline of the delivery is over, and a little longer. Then it is forwarded: to a
// client that has gone, or to a server that still has the transaction open.
func (s *shot) delay(pgproxy.Message) (pgproxy.Verdict, error) {
	ended, _ := s.delivery()
	<-ended
	time.Sleep(lateness)
	return pgproxy.Pass, nil
}

// cancel ends the context of the delivery while the message is held.
func (s *shot) cancel(pgproxy.Message) (pgproxy.Verdict, error) {
	ended, stop := s.delivery()
	stop()
	<-ended
	return pgproxy.Pass, nil
}

// terminate ends the session while the message is held, and waits until it is gone.
func (s *shot) terminate(m pgproxy.Message) (pgproxy.Verdict, error) {
	ctx, cancel := context.WithTimeout(context.Background(), ampleTime)
	defer cancel()
	var done bool
	if err := s.line.direct.QueryRow(ctx, `SELECT pg_terminate_backend($1)`, m.Process).Scan(&done); err != nil {
		return pgproxy.Pass, err
	}
	if !done {
		return pgproxy.Pass, fmt.Errorf("pg_terminate_backend(%d) found no such session", m.Process)
	}
	return pgproxy.Pass, s.line.poll(ctx, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, m.Process)
}
