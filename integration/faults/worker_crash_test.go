package faults

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/testdb"
	"github.com/txidem/txidem-go/txidem"
)

// pointRandom is a kill at a moment that nobody chose, up to randomLimit after the message was handed over.
const (
	pointRandom = "random"
	randomLimit = 8 * time.Millisecond
)

// slot is the place of one worker: when it is killed, another one takes it. It is used by one goroutine.
type slot struct {
	t    *testing.T
	dsn  string
	mode string
	q    *queue
	now  *workerProcess

	kills      map[string]int // by point
	duplicates int
}

func newSlot(t *testing.T, dsn, mode string, q *queue) *slot {
	t.Helper()
	return &slot{t: t, dsn: dsn, mode: mode, q: q, kills: map[string]int{}}
}

func (s *slot) worker() *workerProcess {
	s.t.Helper()
	if s.now == nil {
		s.now = startWorker(s.t, s.dsn, s.mode)
	}
	return s.now
}

func (s *slot) kill(point string) {
	s.now.kill()
	s.now = nil
	s.kills[point]++
}

// deliver hands one message to the worker of the slot and settles it. With a point it kills the worker there. It reports
// whether the queue had a message.
func (s *slot) deliver(point string) bool {
	s.t.Helper()
	message, ok := s.q.take()
	if !ok {
		return false
	}
	p := s.worker()
	require.NoError(s.t, p.deliver(messageID(message), point))
	var a answer
	if point == pointRandom {
		a = s.killAtRandom(p)
	} else if a = p.listen(); a.reached {
		s.kill(point)
		a = answer{dead: true}
	}
	s.settle(message, a)
	return true
}

// killAtRandom kills the worker at some moment and returns what it could still say.
func (s *slot) killAtRandom(p *workerProcess) answer {
	time.Sleep(rand.N(randomLimit)) // the fault's moment: nothing is awaited
	s.kill(pointRandom)
	return p.listen()
}

// settle acks what the worker acked and gives back what it could not. Which of the two it was is decided by what reached
// the broker, as in the field: an ack that a worker sent before it died counts.
func (s *slot) settle(message int, a answer) {
	if a.outcome == "" {
		s.q.nack(message)
		return
	}
	if a.outcome == txidem.Duplicate.String() {
		s.duplicates++
	}
	s.q.ack(message)
}

// Workers are killed with SIGKILL at named points of a delivery and at random: every acked message has one whole effect.
func TestWorkerCrashes(t *testing.T) {
	kills := size(t, envWorkerKills, 20)
	db := testdb.New(t)
	prepare(t, db.DSN())
	pool := db.Pool(t)
	newGuard(t, pool) // checks the server
	q := newQueue(unlimited, 0.3)
	defer q.stop()

	slots := []*slot{newSlot(t, db.DSN(), modeGuarded, q), newSlot(t, db.DSN(), modeGuarded, q)}
	var running sync.WaitGroup
	for i, s := range slots {
		running.Go(func() { s.crash((kills + i) / len(slots)) })
	}
	running.Wait()
	q.close()
	for slots[0].deliver(pointNone) {
	}

	total := requireKills(t, slots, kills)
	acked, deliveries := q.counts()
	t.Logf("%d kills of workers: %v: %d messages acked after %d deliveries", kills, total, acked, deliveries)
	requireExactlyOnce(t, workerKilled, pool, q.ackedIDs())
}

const workerKilled = "worker killed"

// crash delivers until so many workers were killed, with some deliveries in between that nothing breaks.
func (s *slot) crash(kills int) {
	points := []string{pointHandler, pointBeforeCommit, pointAfterCommit, pointRandom}
	for done := 0; done < kills; {
		for range rand.IntN(4) {
			s.deliver(pointNone)
		}
		s.deliver(points[done%len(points)])
		done = 0
		for _, n := range s.kills {
			done += n
		}
	}
}

// requireKills asserts that all kills took place, at every point, and that each one between commit and ack made a duplicate
// of its redelivery. It returns the kills by point.
func requireKills(t *testing.T, slots []*slot, kills int) map[string]int {
	t.Helper()
	total, sum, duplicates := map[string]int{}, 0, 0
	for _, s := range slots {
		for point, n := range s.kills {
			total[point] += n
			sum += n
		}
		duplicates += s.duplicates
	}
	report.injected(transactional, workerKilled, atHandler, total[pointHandler])
	report.injected(transactional, workerKilled, atCommit, total[pointBeforeCommit])
	report.injected(transactional, workerKilled, "before ack", total[pointAfterCommit])
	report.injected(transactional, workerKilled, underLoad, total[pointRandom])
	require.Equal(t, kills, sum, "kills")
	for _, point := range []string{pointHandler, pointBeforeCommit, pointAfterCommit, pointRandom} {
		require.Positive(t, total[point], "kills at the point %s", point)
	}
	require.GreaterOrEqual(t, duplicates, total[pointAfterCommit], "duplicates after kills between commit and ack")
	return total
}

// The control: the same harness with handlers that use no txidem finds an effect doubled by each kill between commit and
// ack. Were this test to find none, TestWorkerCrashes would prove nothing.
func TestWorkerCrashesDoubleWithoutTxidem(t *testing.T) {
	const kills = 3
	db := testdb.New(t)
	prepare(t, db.DSN())
	q := newQueue(unlimited, 0)
	s := newSlot(t, db.DSN(), modePlain, q)
	for range kills {
		require.True(t, s.deliver(pointAfterCommit))
	}
	q.close()
	for s.deliver(pointNone) {
	}

	a, err := readAccount(t.Context(), db.Pool(t))
	require.NoError(t, err)
	f := a.audit(q.ackedIDs(), false)
	require.Len(t, a.debits, len(q.ackedIDs()))
	rows := 0
	for _, n := range a.debits {
		rows += n
	}
	require.Equal(t, len(q.ackedIDs())+kills, rows, "effects: one more than there should be for each kill")
	require.NotEmpty(t, f.doubled)
	t.Logf("%d kills between commit and ack, without txidem: %v", kills, f)
}
