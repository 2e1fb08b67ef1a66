package faults

import (
	"fmt"
	"math/rand/v2"
	"sync"
)

// queue is an at-least-once broker in memory. It makes messages for as long as it is open, sends some of them twice, and
// hands out again, in no order, what was not acked. It outlives every server and worker of a test. It is safe for
// concurrent use.
type queue struct {
	copies float64 // the share of messages that are sent a second time

	mu         sync.Mutex
	changed    *sync.Cond
	pending    []int
	out        int // copies that are with a worker
	limit      int // how many messages to make; -1 while that is open
	made       int
	acks       []uint8 // for each message, how many of its copies were acked
	acked      int     // messages of which a copy was acked
	deliveries int
	paused     bool
	stopped    bool
}

// unlimited makes a queue that makes messages until it is closed.
const unlimited = -1

func newQueue(limit int, copies float64) *queue {
	q := &queue{copies: copies, limit: limit, acks: make([]uint8, 0, max(limit, 1024))}
	q.changed = sync.NewCond(&q.mu)
	return q
}

func messageID(n int) string { return fmt.Sprintf("m-%07d", n) }

// take hands out a copy of a message. It waits while others hold what is left, since they may give it back, and reports
// false when everything was acked.
func (q *queue) take() (message int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.stopped && (q.paused || len(q.pending) == 0 && !q.make()) {
		if q.done() {
			return 0, false
		}
		q.changed.Wait()
	}
	if q.stopped {
		return 0, false
	}
	i := rand.IntN(len(q.pending))
	last := len(q.pending) - 1
	message = q.pending[i]
	q.pending[i] = q.pending[last]
	q.pending = q.pending[:last]
	q.out++
	q.deliveries++
	return message, true
}

// make adds messages to the pending ones, a few so that copies mix with others. The caller holds the lock.
func (q *queue) make() bool {
	for range 16 {
		if q.limit != unlimited && q.made >= q.limit {
			break
		}
		q.pending = append(q.pending, q.made)
		if rand.Float64() < q.copies {
			q.pending = append(q.pending, q.made)
		}
		q.made++
		q.acks = append(q.acks, 0)
	}
	return len(q.pending) > 0
}

// done reports whether nothing is left. The caller holds the lock.
func (q *queue) done() bool {
	return q.limit != unlimited && q.made >= q.limit && len(q.pending)+q.out == 0
}

func (q *queue) ack(message int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out--
	if q.acks[message] == 0 {
		q.acked++
	}
	q.acks[message]++
	q.changed.Broadcast()
}

// nack gives a copy back, as a broker does when the worker says so or is gone.
func (q *queue) nack(message int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out--
	q.pending = append(q.pending, message)
	q.changed.Broadcast()
}

// settle acks or nacks.
func (q *queue) settle(message int, err error) {
	if err != nil {
		q.nack(message)
		return
	}
	q.ack(message)
}

// After close no new messages are made. What was made is still delivered until it is acked.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit = q.made
	q.changed.Broadcast()
}

// stop ends the queue whatever is left. It is for a test that has failed.
func (q *queue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	q.changed.Broadcast()
}

// pause hands out nothing until resume, and returns once every copy has come back.
func (q *queue) pause() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = true
	for q.out > 0 {
		q.changed.Wait()
	}
}

func (q *queue) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = false
	q.changed.Broadcast()
}

// waitAcked waits until n messages were acked, or nothing is left.
func (q *queue) waitAcked(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.acked < n && !q.done() && !q.stopped {
		q.changed.Wait()
	}
}

// counts returns how many messages were acked, and how many deliveries there were.
func (q *queue) counts() (acked, deliveries int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.acked, q.deliveries
}

// ackedIDs returns the ids of the messages of which a copy was acked.
func (q *queue) ackedIDs() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var ids []string
	for message, acks := range q.acks {
		if acks > 0 {
			ids = append(ids, messageID(message))
		}
	}
	return ids
}
