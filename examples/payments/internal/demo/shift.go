package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/txidem/txidem-go/examples/payments/internal/broker"
	"github.com/txidem/txidem-go/examples/payments/internal/fleet"
	"github.com/txidem/txidem-go/examples/payments/internal/worker"
)

const (
	pollEvery  = 50 * time.Millisecond
	stallLimit = 30 * time.Second // without a single ack
)

// shift is one run's work: workers drain a stream while some of them are killed. It is used by one goroutine.
type shift struct {
	stream *broker.Stream
	config worker.Config // of every worker
	kills  []Kill        // that are still to come
	fleet  *fleet.Fleet
	stages map[*fleet.Worker]worker.Stage // what each worker reported last
	doomed map[*fleet.Worker]bool         // a kill is on its way to them
	due    chan *fleet.Worker             // workers whose time has come

	stall stall

	deliveries  int // that workers have reported
	killed      int
	afterCommit int // workers killed between COMMIT and ack
	lastFailure string
}

func newShift(stream *broker.Stream, config worker.Config, kills []Kill) *shift {
	return &shift{
		stream: stream,
		config: config,
		kills:  kills,
		fleet:  fleet.New(),
		stages: map[*fleet.Worker]worker.Stage{},
		doomed: map[*fleet.Worker]bool{},
		due:    make(chan *fleet.Worker, len(kills)), // a timer never waits for its reader
	}
}

// work starts the workers and returns when the broker says that the stream is drained. No worker is left then, nor
// after an error.
func (s *shift) work(ctx context.Context, workers int, settled func(int)) error {
	defer s.fleet.Stop()
	for range workers {
		if err := s.fleet.Start(s.config); err != nil {
			return err
		}
	}
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	var err error
	for drained := false; err == nil && !drained; {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case e := <-s.fleet.Events():
			err = s.handle(e)
		case victim := <-s.due:
			victim.Kill()
		case <-poll.C:
			drained, err = s.poll(ctx, settled)
		}
	}
	return err
}

// poll asks the broker how far the stream is. It is an error when that has not changed for long.
func (s *shift) poll(ctx context.Context, settled func(int)) (drained bool, err error) {
	state, err := s.stream.State(ctx)
	if err != nil {
		return false, err
	}
	settled(state.Settled)
	if !state.Drained() && s.stall.tooLong(state.Settled) {
		return false, s.stalled(state)
	}
	return state.Drained(), nil
}

// handle keeps track of the worker.
func (s *shift) handle(e fleet.Event) error {
	if e.Exited {
		return s.replace(e)
	}
	s.stages[e.Worker] = e.Report.Stage
	switch e.Report.Stage {
	case worker.Received:
		s.deliveries++
	case worker.Failed:
		s.lastFailure = e.Report.Text
	case worker.Ready, worker.Committed, worker.Acking: // remembered above
	}
	s.aim(e)
	return nil
}

// aim dooms the worker if the next kill is due and wants a worker at this stage.
func (s *shift) aim(e fleet.Event) {
	if len(s.kills) == 0 || s.doomed[e.Worker] {
		return
	}
	next := s.kills[0]
	if s.deliveries < next.After || e.Report.Stage != next.Aim {
		return
	}
	s.kills = s.kills[1:]
	s.doomed[e.Worker] = true
	time.AfterFunc(next.Delay, func() { s.due <- e.Worker })
}

// replace counts a killed worker and starts a new one in its place. A worker that ended for another reason ends the demo.
//
// A kill counts as between COMMIT and ack when the last thing the worker reported was that the server had confirmed a
// COMMIT. The count can be too low and not too high: a worker that dies after the server's COMMIT and before its report
// of it is not counted, and a worker reports that it is about to ack before it does.
func (s *shift) replace(e fleet.Event) error {
	last := s.stages[e.Worker]
	wasDoomed := s.doomed[e.Worker]
	s.fleet.Remove(e.Worker)
	delete(s.stages, e.Worker)
	delete(s.doomed, e.Worker)
	if !wasDoomed {
		return fmt.Errorf("a worker ended by itself: %s", e.End)
	}
	s.killed++
	if last == worker.Committed {
		s.afterCommit++
	}
	return s.fleet.Start(s.config)
}

func (s *shift) stalled(state broker.State) error {
	err := fmt.Errorf("no message was acked for %v, and %d of %d are not acked yet", stallLimit,
		state.Published-state.Settled, state.Published)
	if s.lastFailure != "" {
		err = fmt.Errorf("%w; the last error of a handler was: %s", err, s.lastFailure)
	}
	return err
}

// stall notices when a number has not grown for long.
type stall struct {
	best  int
	since time.Time
}

func (s *stall) tooLong(n int) bool {
	if n > s.best || s.since.IsZero() {
		s.best, s.since = n, time.Now()
	}
	return time.Since(s.since) > stallLimit
}
