package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/examples/payments/internal/worker"
	"github.com/txidem/txidem-go/txidem/envelope"
)

func TestPlanFollowsFromTheSeed(t *testing.T) {
	t.Parallel()
	assert.Equal(t, NewPlan(7, 500, 20), NewPlan(7, 500, 20))
	assert.NotEqual(t, NewPlan(7, 500, 20), NewPlan(8, 500, 20))
}

func TestPlanPublishesEveryMessageAndSomeTwice(t *testing.T) {
	t.Parallel()
	p := NewPlan(3, 500, 0)
	copies := map[int]int{}
	for _, message := range p.Order {
		copies[message]++
	}
	assert.Len(t, copies, 500)
	twice := 0
	for message, n := range copies {
		assert.LessOrEqual(t, n, 2, "message %d", message)
		twice += n - 1
	}
	assert.Positive(t, twice)

	ids := map[string]bool{}
	for _, cmd := range p.Commands {
		ids[cmd.MessageID] = true
		assert.Positive(t, cmd.AmountCents)
	}
	assert.Len(t, ids, 500, "ids are unique")
}

func TestPlanBodiesOfCopiesAreTheSame(t *testing.T) {
	t.Parallel()
	p := NewPlan(3, 100, 0)
	bodies, err := p.Bodies(time.UnixMilli(1749132727000))
	require.NoError(t, err)
	require.Len(t, bodies, len(p.Order))
	first := map[int][]byte{}
	for i, message := range p.Order {
		if body, ok := first[message]; ok {
			assert.Equal(t, body, bodies[i])
		}
		first[message] = bodies[i]
		msg, err := envelope.Decode(bodies[i])
		require.NoError(t, err)
		assert.Equal(t, p.Commands[message].MessageID, msg.ID())
	}
}

func TestPlanKillsLeaveWorkToHit(t *testing.T) {
	t.Parallel()
	p := NewPlan(5, 200, 60)
	require.Len(t, p.Kills, 60)
	aims := map[worker.Stage]int{}
	after := 0
	for _, k := range p.Kills {
		assert.GreaterOrEqual(t, k.After, max(after, 1), "in order")
		assert.LessOrEqual(t, k.After, len(p.Order)*4/5)
		after = k.After
		aims[k.Aim]++
	}
	assert.Positive(t, aims[worker.Received])
	assert.Positive(t, aims[worker.Committed])
	assert.Len(t, aims, 2)
}
