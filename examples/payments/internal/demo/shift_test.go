package demo

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/examples/payments/internal/broker"
	"github.com/txidem/txidem-go/examples/payments/internal/fleet"
	"github.com/txidem/txidem-go/examples/payments/internal/worker"
)

func reported(w *fleet.Worker, stage worker.Stage) fleet.Event {
	return fleet.Event{Worker: w, Report: worker.Report{Stage: stage}}
}

func TestShiftAimsAtTheWorkerThatReportsTheStage(t *testing.T) {
	t.Parallel()
	s := newShift(nil, worker.Config{}, []Kill{{After: 2, Aim: worker.Committed}, {After: 2, Aim: worker.Received}})
	a, b := &fleet.Worker{}, &fleet.Worker{}
	require.NoError(t, s.handle(reported(a, worker.Received)))
	require.NoError(t, s.handle(reported(a, worker.Committed)))
	assert.Empty(t, s.doomed, "one delivery so far")
	require.NoError(t, s.handle(reported(b, worker.Received)))
	assert.Empty(t, s.doomed, "the next kill wants a COMMIT")
	require.NoError(t, s.handle(reported(b, worker.Committed)))
	assert.Same(t, b, <-s.due)
	require.NoError(t, s.handle(reported(b, worker.Received)))
	assert.Len(t, s.kills, 1, "a worker is not killed twice")
	require.NoError(t, s.handle(reported(a, worker.Received)))
	assert.Same(t, a, <-s.due)
	assert.Empty(t, s.kills)
}

func TestShiftEndsWhenAWorkerEndsByItself(t *testing.T) {
	t.Parallel()
	s := newShift(nil, worker.Config{}, nil)
	err := s.handle(fleet.Event{Worker: &fleet.Worker{}, Exited: true, End: "no table"})
	assert.ErrorContains(t, err, "no table")
}

func TestShiftStalledQuotesTheHandler(t *testing.T) {
	t.Parallel()
	s := newShift(nil, worker.Config{}, nil)
	failure := fleet.Event{Worker: &fleet.Worker{}, Report: worker.Report{Stage: worker.Failed, Text: "no money"}}
	require.NoError(t, s.handle(failure))
	err := s.stalled(broker.State{Published: 10, Settled: 7})
	assert.ErrorContains(t, err, "3 of 10")
	assert.ErrorContains(t, err, "no money")
}
