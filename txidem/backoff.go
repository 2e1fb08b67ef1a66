package txidem

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// The bounds of the retries inside one delivery when [Config.Retry] leaves them zero. Brokers commonly give a consumer 30
// seconds to ack: ten for retries, and the wait for a copy in flight, leave time for the handler.
const (
	DefaultMaxAttempts = 5
	DefaultMaxTime     = 10 * time.Second
)

// RetryPolicy bounds the attempts inside one delivery. Each is a new transaction, so the handler runs again from its
// beginning. It does after a serialization failure or deadlock (SQLSTATE 40001 and 40P01), of the claim, of COMMIT, or found
// in the chain of the handler's error; after a connection that was lost before COMMIT was sent; after a COMMIT that was
// found not to have taken place since the connection broke; and after a statement of the handler's that was prepared
// before its table was altered (26000, 0A000), twice at most. The handler's other errors are never retried here. A server
// that is away, a dead connection and a stale statement of the claim's own are met before the handler runs.
//
// The pauses are drawn from zero up to a limit: 20 ms at first, doubling up to a second where the handler ran, or to a
// quarter of a second where the server is away; 20 ms where a moment is enough. In a batch the policy is for each part that
// is tried.
type RetryPolicy struct {
	// MaxAttempts is how often the handler may run in one delivery. Failures before it ran, such as dead connections in
	// the pool or a server that is starting, cost time and not attempts. 1 is for handlers that must not run twice
	// in one delivery. Default 5 ([DefaultMaxAttempts]).
	MaxAttempts int

	// MaxTime is how long after the start of the delivery a new attempt may begin. It lets a restart or a failover of the
	// database pass without costing the broker's delivery attempts. Not bounded by it are the last attempt itself, and the
	// time to find out what became of a COMMIT, which is InFlightWait and five seconds. Default 10 s ([DefaultMaxTime]).
	MaxTime time.Duration
}

func (p RetryPolicy) resolve() RetryPolicy {
	if p.MaxAttempts == 0 {
		p.MaxAttempts = DefaultMaxAttempts
	}
	if p.MaxTime == 0 {
		p.MaxTime = DefaultMaxTime
	}
	return p
}

func (p RetryPolicy) validate() error {
	if p.MaxAttempts < 0 {
		return &ConfigError{Field: "Retry.MaxAttempts", Problem: fmt.Sprintf("is %d: it must be positive", p.MaxAttempts)}
	}
	if p.MaxTime < 0 {
		return &ConfigError{Field: "Retry.MaxTime", Problem: fmt.Sprintf("is %s: it must be positive", p.MaxTime)}
	}
	return nil
}

// maxRepeated bounds the repetitions that help at once or not at all: one for each statement that precedes the handler,
// since a connection may have lost every statement that was prepared on it.
const maxRepeated = 2

// The longest pauses. The first of a growing pause is firstPause, and each of them is drawn from zero up.
const (
	firstPause = 20 * time.Millisecond
	soonPause  = 20 * time.Millisecond
	laterPause = 250 * time.Millisecond
	maxPause   = time.Second
)

// budget is what is left of the retries of one delivery.
type budget struct {
	policy   RetryPolicy
	start    time.Time
	failures int // growing pauses taken
	repeated int
}

func (g *Guard) newBudget() budget { return budget{policy: g.cfg.Retry, start: time.Now()} }

// left reports whether the handler may run once more.
func (b *budget) left(attempts int) bool {
	return attempts < b.policy.MaxAttempts && time.Since(b.start) < b.policy.MaxTime
}

// allows reports whether an attempt may begin after another d, and takes the pause before it. It is false when the
// pause does not fit into the time that the context or the policy leaves.
func (b *budget) allows(ctx context.Context, d decision, attempts int) bool {
	switch d {
	case final, finalHandler:
		return false
	case rerun:
		if attempts >= b.policy.MaxAttempts {
			return false
		}
	case rerunStale:
		if attempts >= b.policy.MaxAttempts || b.repeated == maxRepeated {
			return false
		}
		b.repeated++
	case retryTwice:
		if b.repeated == maxRepeated {
			return false
		}
		b.repeated++
	case retrySoon, retryWhenBack, resolve:
	}
	pause := b.pause(d)
	if b.policy.MaxTime-time.Since(b.start) < pause {
		return false
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= pause {
		return false
	}
	return sleep(ctx, pause)
}

func (b *budget) pause(d decision) time.Duration {
	limit := soonPause
	if d == rerun || d == retryWhenBack {
		limit = min(maxPause, firstPause<<min(b.failures, 10))
		b.failures++
	}
	if d == retryWhenBack {
		limit = min(limit, laterPause)
	}
	return rand.N(limit) //nolint:gosec // jitter, not a secret
}

// sleep waits, and reports false when ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
