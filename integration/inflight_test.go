package integration

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// copies delivers n copies of one message at once, spread over the guards, and counts the outcomes. The first handler to
// run stays inside until the others have had the chance to pile up behind its claim.
func (w *world) copies(n int, id string, fn txidem.Handler, guards ...*txidem.Guard) map[txidem.Outcome]int {
	w.t.Helper()
	outcomes := make([]txidem.Outcome, n)
	errs := make([]error, n)
	var start, done sync.WaitGroup
	start.Add(1)
	for i := range n {
		done.Go(func() {
			start.Wait()
			outcomes[i], errs[i] = guards[i%len(guards)].Process(w.t.Context(), id, fn)
		})
	}
	start.Done()
	done.Wait()
	count := map[txidem.Outcome]int{}
	for i := range n {
		require.NoError(w.t, errs[i])
		count[outcomes[i]]++
	}
	return count
}

// slow is a handler that holds its claim until others wait for it.
func (w *world) slow(waiters int) txidem.Handler {
	return func(ctx context.Context, tx pgx.Tx) error {
		w.waitForLockWaiters(waiters)
		return w.ok(ctx, tx)
	}
}

// Of twenty copies at once, over one pool and over two, one runs and the others are duplicates.
func TestTwentyCopiesAtOnce(t *testing.T) {
	t.Parallel()
	for name, pools := range map[string]int{"one pool": 1, "two pools": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, conns(20), inFlightWait(time.Minute))
			guards := []*txidem.Guard{w.guard}
			if pools == 2 {
				cfg := &txidem.Config{Consumer: consumer, InFlightWait: time.Minute}
				guards = append(guards, newGuard(t, w.db.Pool(t, conns(20)), cfg))
			}
			count := w.copies(20, "m", w.slow(5), guards...)
			require.Equal(t, map[txidem.Outcome]int{txidem.Processed: 1, txidem.Duplicate: 19}, count)
			w.requireCalls(1)
			w.requireEffects(1)
		})
	}
}

// Two hundred copies over two pools: one handler call.
func TestTwoHundredCopiesOverTwoPools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conns(25), inFlightWait(time.Minute))
	other := newGuard(t, w.db.Pool(t, conns(25)), &txidem.Config{Consumer: consumer, InFlightWait: time.Minute})
	count := w.copies(200, "m", w.slow(40), w.guard, other)
	require.Equal(t, map[txidem.Outcome]int{txidem.Processed: 1, txidem.Duplicate: 199}, count)
	w.requireCalls(1)
	w.requireEffects(1)
}

// When the first copy's handler fails, a copy that waited for it takes over.
func TestWaiterTakesOverWhenTheFirstFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inFlightWait(time.Minute))
	first := w.hold(w.guard, "m")
	waiter := make(chan error, 1)
	var outcome txidem.Outcome
	go func() {
		var err error
		outcome, err = w.guard.Process(t.Context(), "m", w.ok)
		waiter <- err
	}()
	w.waitForLockWaiters(1)
	first.end(io.EOF)
	require.Equal(t, io.EOF, first.err)
	require.NoError(t, <-waiter)
	require.Equal(t, txidem.Processed, outcome)
	w.requireCalls(2)
	w.requireEffects(1)
}

// Copies of a slow message give up after InFlightWait and leave their connections to other messages.
func TestWaitersDoNotStarveOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conns(4), inFlightWait(50*time.Millisecond))
	hot := w.hold(w.guard, "hot")
	errs := make(chan error, 3)
	for range 3 {
		go func() {
			_, err := w.guard.Process(t.Context(), "hot", w.ok)
			errs <- err
		}()
	}
	w.requireOutcome(txidem.Processed, "other", w.ok)
	for range 3 {
		err := <-errs
		require.ErrorIs(t, err, txidem.ErrInFlight)
		var inFlight *txidem.InFlightError
		require.ErrorAs(t, err, &inFlight)
		require.Equal(t, "hot", inFlight.ID)
		require.Equal(t, 50*time.Millisecond, inFlight.Wait)
		require.Contains(t, inFlight.Cause, "copy")
		require.True(t, txidem.Retryable(err))
		require.Positive(t, txidem.RetryAfter(err))
	}
	hot.end(nil)
	require.Equal(t, txidem.Processed, hot.outcome)
	w.requireOutcome(txidem.Duplicate, "hot", w.ok)
	w.requireEffects(2)
}

// The bound is the claim's alone: the handler sees the session's own lock_timeout, whatever that is, and so does whoever
// has the connection next.
func TestHandlerSeesTheSessionsLockTimeout(t *testing.T) {
	t.Parallel()
	for _, own := range []string{"0", "1234ms", "7s"} {
		t.Run(own, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, conns(1), inFlightWait(50*time.Millisecond))
			w.exec(`SET lock_timeout = '` + own + `'`)
			var inside string
			show := func(ctx context.Context, tx pgx.Tx) error {
				return errors.Join(w.ok(ctx, tx), tx.QueryRow(ctx, `SHOW lock_timeout`).Scan(&inside))
			}
			w.requireOutcome(txidem.Processed, "m", show)
			require.Equal(t, own, inside)
			w.requireOutcome(txidem.Duplicate, "m", show)
			require.Equal(t, own, w.setting("lock_timeout"), "after a duplicate")

			other := newGuard(t, w.db.Pool(t), &txidem.Config{Consumer: consumer})
			hot := w.hold(other, "hot")
			_, err := w.process("hot")
			require.ErrorIs(t, err, txidem.ErrInFlight)
			hot.end(nil)
			require.Equal(t, own, w.setting("lock_timeout"), "after a copy in flight")
			w.requireEffects(2)
		})
	}
}

func (w *world) setting(name string) string {
	w.t.Helper()
	var value string
	require.NoError(w.t, w.pool.QueryRow(w.t.Context(), `SHOW `+name).Scan(&value))
	return value
}

// A lock on the table itself, as a migration takes it, is met before the statement can set a bound of its own: the
// client's deadline ends the wait.
func TestLockedTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inFlightWait(20*time.Millisecond))
	lock, err := w.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = lock.Exec(t.Context(), `LOCK TABLE txidem_messages IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	for name, err := range map[string]error{
		"Process":  second(w.process("m")),
		"Remember": w.guard.Remember(t.Context(), "m"),
		"Forget":   w.guard.Forget(t.Context(), "m"),
	} {
		require.ErrorIs(t, err, txidem.ErrInFlight, name)
		require.ErrorContains(t, err, "locked", name)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "%s: the caller's context has not ended", name)
	}
	require.NoError(t, lock.Rollback(t.Context()))
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireEffects(1)
}

// Forget waits for a copy in flight: a replay after it would be a duplicate of that copy otherwise.
func TestForgetWaitsForACopyInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inFlightWait(time.Minute))
	first := w.hold(w.guard, "m")
	forgotten := make(chan error, 1)
	go func() { forgotten <- w.guard.Forget(t.Context(), "m") }()
	w.waitForLockWaiters(1)
	first.end(nil)
	require.Equal(t, txidem.Processed, first.outcome)
	require.NoError(t, <-forgotten)
	require.Zero(t, w.count(`SELECT count(*) FROM txidem_messages`))
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireCalls(2)
	w.db.Invariant(t)
}

// Forget past the bound removes nothing, and says so.
func TestForgetGivesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inFlightWait(20*time.Millisecond))
	first := w.hold(w.guard, "m")
	require.ErrorIs(t, w.guard.Forget(t.Context(), "m"), txidem.ErrInFlight)
	first.end(nil)
	w.requireOutcome(txidem.Duplicate, "m", w.ok)
	w.requireEffects(1)
}

// Forget of a message in flight whose handler fails, and of one nobody knows: nothing is there afterwards.
func TestForgetOfNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inFlightWait(time.Minute))
	require.NoError(t, w.guard.Forget(t.Context(), "never"))
	first := w.hold(w.guard, "m")
	forgotten := make(chan error, 1)
	go func() { forgotten <- w.guard.Forget(t.Context(), "m") }()
	w.waitForLockWaiters(1)
	first.end(io.EOF)
	require.NoError(t, <-forgotten)
	w.requireEffects(0)
}

// Remember meets a transaction that has claimed the message: it waits, and the message is remembered either way.
func TestRememberWaitsForACopyInFlight(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]error{"copy commits": nil, "copy fails": io.EOF} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, inFlightWait(time.Minute))
			first := w.hold(w.guard, "m")
			remembered := make(chan error, 1)
			go func() { remembered <- w.guard.Remember(t.Context(), "m") }()
			w.waitForLockWaiters(1)
			first.end(result)
			require.NoError(t, <-remembered)
			w.requireOutcome(txidem.Duplicate, "m", w.ok)
			w.requireCalls(1)
			w.db.Invariant(t)
		})
	}
}
