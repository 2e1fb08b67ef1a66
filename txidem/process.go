package txidem

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/internal/handlertx"
)

// Handler does the work of one message through tx. See [Guard.Process].
type Handler = func(ctx context.Context, tx pgx.Tx) error

// Process delivers one message to fn. It begins a transaction, claims the id in it, hands the transaction to fn and commits:
// what fn writes through tx and the record of the message become visible together or not at all. Anything else that fn does
// can happen more than once.
//
// The result is nil with Processed, Duplicate (fn was not called) or Unguarded (id is empty, see [Config.RequireID]): ack
// the message. Or it is an error: [Settle] says what to tell the broker. When fn returns an error, or panics, nothing is
// stored, and the error comes back first in its chain, or the panic goes on.
//
// fn may be called several times in one delivery, each time with a new transaction; see [RetryPolicy]. tx is a pgx.Tx whose
// Commit and Rollback are refused; see "The handler's transaction" in the package's documentation.
//
// Process is safe for concurrent use.
func (g *Guard) Process(ctx context.Context, id string, fn Handler, opts ...Option) (Outcome, error) {
	if fn == nil {
		return 0, errors.New("txidem: Process needs a handler, got nil")
	}
	d := &struct {
		run    run
		single single
	}{} // one allocation
	d.single = single{g: g, id: id, fn: fn}
	d.run.mode = &d.single
	return d.run.observed(ctx, &d.single, opts)
}

// Wrap makes a broker handler from h, over [Guard.Process]: nil means ack, because the message is processed or a duplicate,
// and for an error [Settle] says what to tell the broker. id returns the message's id verbatim. Wrap panics when g, id or h
// is nil. The result is safe for concurrent use if h is.
func Wrap[M any](
	g *Guard, id func(M) string, h func(context.Context, pgx.Tx, M) error, opts ...Option,
) func(context.Context, M) error {
	if g == nil || id == nil || h == nil {
		panic("txidem: Wrap needs a guard, an id function and a handler")
	}
	return func(ctx context.Context, msg M) error {
		_, err := g.Process(ctx, id(msg), func(ctx context.Context, tx pgx.Tx) error { return h(ctx, tx, msg) }, opts...)
		return err
	}
}

// observed delivers one message, and tells the observer.
func (r *run) observed(ctx context.Context, s *single, opts []Option) (Outcome, error) {
	if err := s.g.pooled(); err != nil {
		return 0, err
	}
	r.g = s.g
	r.event.Consumer, r.event.ID = s.g.cfg.Consumer, s.id
	o := collect(s.g.cfg.Observer, opts)
	return o.observer.observe(ctx, &r.event, func() (_ Outcome, err error) {
		if s.hasID, err = s.g.admit(ctx, s.id); err != nil {
			return 0, err
		}
		res := r.deliver(ctx)
		return outcomeOf(res.outcome, res.err)
	})
}

// single is the mode of one message and its handler.
type single struct {
	g     *Guard
	id    string
	fn    Handler
	hasID bool
}

func (s *single) attempt(ctx context.Context, r *run) attemptResult { return r.transact(ctx, s) }

func (s *single) guarded() bool { return s.hasID }

func (s *single) claimed() (string, []string) { return s.id, nil }

func (s *single) open(ctx context.Context, t *transaction, before history) (bool, Outcome, error) {
	if !s.hasID {
		err := s.g.beginUnguarded(ctx, t)
		return err == nil, 0, err
	}
	claimed, err := s.g.begin(ctx, t, &s.g.beginning, s.id)
	if err != nil || claimed {
		return err == nil, 0, err
	}
	found, err := s.g.lookAndRollback(ctx, t, s.id)
	if err != nil {
		return false, 0, err
	}
	outcome, err := s.g.verdict(found, s.id, before)
	return false, outcome, err
}

func (s *single) handle(ctx context.Context, tx *handlertx.Tx) error { return s.fn(ctx, tx) }
