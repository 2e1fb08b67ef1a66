package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/pgproxy"
)

// point is a message of the clean exchange: the place of a fault.
type point struct {
	direction pgproxy.Direction
	index     int
	kind      byte
	name      string
	where     string // what the delivery was doing: one of the report's columns
}

func (s *shot) pointOf(m pgproxy.Message) point {
	return point{m.Direction, m.Index, m.Type, m.String(), s.story.at()}
}

// mostDeliveries is how often a broker delivers a message before it calls it poison.
const mostDeliveries = 20

// deliver has the message delivered until it is acked.
func (s *shot) deliver(ctx context.Context, deadline time.Duration) error {
	var err error
	for range mostDeliveries {
		if err = s.deliverOnce(ctx, deadline); err == nil {
			return nil
		}
		if stumbles(err) {
			s.story.stumbled.Store(true)
		}
		s.line.proxy.Release()
	}
	return fmt.Errorf("%w in %d deliveries: %w", errNeverAcked, mostDeliveries, err)
}

func (s *shot) deliverOnce(ctx context.Context, deadline time.Duration) error {
	ctx, stop := s.begin(ctx, deadline)
	defer stop()
	defer s.end()
	s.story.reach(atClaim)
	return s.line.mode.deliver(ctx, s.line, s.story)
}

// cell breaks one delivery at p and asserts what is promised.
func (l *line) cell(t *testing.T, f fault, p point) {
	t.Helper()
	for ; ; l.deadline *= 2 {
		l.prepare(t)
		s := &shot{line: l, story: l.next(), fault: f, at: p}
		l.proxy.Observe(s.hook)
		err := s.deliver(t.Context(), l.deadline)
		l.proxy.Observe(nil)
		l.proxy.Release()
		fired, struck := s.result()
		require.NoError(t, struck, "the fault at %s", p.name)
		found := l.judge(t, s, err)
		if fired {
			report.injected(l.mode.promise, f.name, p.where, 1)
			report.doubled(l.mode.promise, f.name, found.doubled)
			report.lost(l.mode.promise, f.name, found.lost)
			report.leaked(l.mode.promise, f.name, found.leaked)
			return
		}
		// The machine was too slow for the deadline, which ended the delivery before the message was due.
		require.True(t, f.deadline && l.deadline < ampleTime, "the fault did not fire at %s", p.name)
	}
}

// finding is what is wrong after a message was acked.
type finding struct{ doubled, lost, leaked int }

// judge asserts the invariant after the message was acked with err nil: one effect, one record, nothing left behind. A
// further copy of the message must change nothing. WrapSeen promises at least one effect, and a record unless it said
// that there is none.
func (l *line) judge(t *testing.T, s *shot, err error) finding {
	t.Helper()
	leaked, leak := l.settle(t.Context())
	assert.NoError(t, leak)
	b := l.balance(t, s.story.id)
	f := l.compare(b)
	f.leaked = leaked
	if err != nil {
		f.lost = 1
	}
	assert.NoError(t, err)
	assert.Zero(t, f.lost, "lost: acked %v, %+v", err == nil, b)
	if l.mode.promise == seenSet {
		assert.True(t, b.records == 1 || s.story.forgotten.Load(), "records: %+v", b)
		return f
	}
	assert.Zero(t, f.doubled, "doubled: %+v", b)
	assert.Equal(t, 1, b.records, "records: %+v", b)
	assert.NoError(t, s.deliver(t.Context(), ampleTime), "one more copy")
	assert.Equal(t, b, l.balance(t, s.story.id), "one more copy")
	return f
}

// compare counts what of the effect is there too often, and whether something of it is missing. The parts of an effect
// are written by one transaction, so that each of them is there equally often.
func (l *line) compare(b balance) (f finding) {
	for _, part := range l.script.parts {
		f.doubled = max(f.doubled, b.parts[part]-1)
		if b.parts[part] == 0 {
			f.lost = 1
		}
	}
	if len(b.parts) > len(l.script.parts) {
		f.doubled = max(f.doubled, 1) // something that the script undid, or that was refused, is there as well
	}
	return f
}
