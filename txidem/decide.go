package txidem

import (
	"errors"
	"fmt"

	"github.com/txidem/txidem-go/internal/handlertx"
	"github.com/txidem/txidem-go/internal/pgerr"
)

// phase is how far an attempt had come when it failed.
type phase int

const (
	phaseOpen       phase = iota // connection, BEGIN and claim, or the look at what is there instead
	phaseQueue                   // a pipeline's handler was queueing, or what it queued could not be sent
	phaseHandler                 // the handler, or the statements that it queued
	phaseCommit                  // COMMIT
	phaseRolledBack              // a COMMIT of unknown outcome turned out not to have taken place
)

// failure is what is known of an attempt that failed.
type failure struct {
	phase   phase
	err     error
	use     handlertx.Use // what the handler made of its transaction
	ctxErr  error         // of the caller's context
	closed  bool          // the connection
	guarded bool          // there is a claim, so that the server can be asked what became of a COMMIT
}

// decision says how a delivery goes on after an attempt.
type decision int

const (
	final         decision = iota // the result stands
	finalHandler                  // the result stands, and is the handler's doing or the message's: another may fare better
	rerun                         // run the handler again: costs an attempt
	rerunStale                    // as rerun, after a prepared statement of it was stale: helps at once or not at all
	retrySoon                     // the handler did not run, and a moment is enough: the connection was a dead one of the pool
	retryWhenBack                 // the handler did not run, and the server is away
	retryTwice                    // the handler did not run, and a repetition helps at once or not at all
	resolve                       // the outcome of COMMIT is unknown: ask for it
)

// stands reports whether the result is the last word.
func (d decision) stands() bool { return d == final || d == finalHandler }

// concernsHandler reports whether the handler, or the message, may be to blame.
func (d decision) concernsHandler() bool { return d == finalHandler || d == rerun || d == rerunStale }

// rule is a row of the table of decisions.
type rule struct {
	name  string
	phase phase
	when  func(f *failure) bool
	then  decision
	say   func(f *failure) error // the error to end with, where it is not the failure's own
}

// decide says what a failure means: the first rule of its phase that fits.
func decide(f failure) (decision, error) {
	r := ruleFor(&f)
	if r.say != nil {
		f.err = r.say(&f)
	}
	return r.then, f.err
}

func ruleFor(f *failure) *rule {
	for i := range rules {
		if r := &rules[i]; r.phase == f.phase && r.when(f) {
			return r
		}
	}
	panic(fmt.Sprintf("txidem: no rule for phase %d", f.phase)) // each phase ends with a rule for what is left
}

var rules = []rule{
	{
		"a copy was in flight", phaseOpen,
		func(f *failure) bool { return f.ctxErr == nil && ofCopy(f.err) }, finalHandler, nil,
	},
	{"the context ended before the handler", phaseOpen, ctxEnded, final, nil},
	{"the table was locked", phaseOpen, is(ErrInFlight), final, nil},
	{"forgetting ended in an unknown COMMIT", phaseOpen, is(ErrCommitUnknown), final, nil},
	{"the claim met a conflict", phaseOpen, conflict, retrySoon, nil},
	{"the claim met a dead connection", phaseOpen, func(f *failure) bool { return f.closed }, retrySoon, nil},
	{"the server was away", phaseOpen, func(f *failure) bool { return serverAway(f.err) }, retryWhenBack, nil},
	{
		"a statement of the claim was stale", phaseOpen,
		func(f *failure) bool { return pgerr.Stale(f.err) }, retryTwice, nil,
	},
	{"the record was gone", phaseOpen, is(ErrNoRecord), retryTwice, nil},
	{"the claim failed", phaseOpen, always, final, nil},

	{"the handler queued nothing that can be sent", phaseQueue, always, finalHandler, nil},

	{"the context ended with the handler", phaseHandler, ctxEnded, final, nil},
	{
		"the handler ended the transaction", phaseHandler,
		func(f *failure) bool { return errors.Is(f.use.Misuse, handlertx.ErrEnded) }, final, nil,
	},
	{
		"the handler misused the transaction", phaseHandler,
		func(f *failure) bool { return f.use.Misuse != nil }, finalHandler, nil,
	},
	{
		"the handler said that it is permanent", phaseHandler,
		func(f *failure) bool { return isPermanent(f.err) }, finalHandler, nil,
	},
	{
		"the handler was too slow", phaseHandler,
		func(f *failure) bool { return f.closed && slow(f) != nil }, finalHandler, tooSlow,
	},
	{"the handler met a conflict", phaseHandler, conflict, rerun, nil},
	{
		"the server ended the session", phaseHandler,
		func(f *failure) bool { return f.closed && pgerr.Fatal(f.err) }, rerun, nil,
	},
	{
		"a statement of the handler was stale", phaseHandler,
		func(f *failure) bool { return pgerr.StalePlan(f.err) }, rerunStale, nil,
	},
	{"the handler lost its connection", phaseHandler, connectionLost, rerun, nil},
	{"the handler failed", phaseHandler, always, finalHandler, nil},

	{
		"COMMIT is unknown", phaseCommit,
		func(f *failure) bool { return f.guarded && is(ErrCommitUnknown)(f) }, resolve, nil,
	},
	{"COMMIT is unknown without an id", phaseCommit, is(ErrCommitUnknown), final, nothingToAsk},
	{"the handler was too slow, and hid it", phaseCommit, lostToSlowness, finalHandler, tooSlow},
	{"the handler's own deadline, or statement, closed the connection", phaseCommit, closedByHandler, finalHandler, withLost},
	{"the connection was lost before COMMIT", phaseCommit, is(errConnLost), rerun, nil},
	{"COMMIT met a conflict", phaseCommit, conflict, rerun, nil},
	{"the handler hid a failure", phaseCommit, is(ErrTxAborted), finalHandler, nil},
	{"COMMIT was refused", phaseCommit, func(f *failure) bool { return pgerr.State(f.err) != "" }, finalHandler, nil},
	{"COMMIT was not sent", phaseCommit, always, final, nil},

	{"not committed, and the context has ended", phaseRolledBack, ctxEnded, final, contextEnded},
	{
		"not committed, since the handler was too slow", phaseRolledBack,
		func(f *failure) bool { return slow(f) != nil }, finalHandler, tooSlow,
	},
	{"not committed, as the server answered", phaseRolledBack, answered, finalHandler, notStored},
	{"not committed, the connection broke", phaseRolledBack, always, rerun, notStored},
}

func always(*failure) bool { return true }

func ctxEnded(f *failure) bool { return f.ctxErr != nil }

func is(target error) func(*failure) bool {
	return func(f *failure) bool { return errors.Is(f.err, target) }
}

func conflict(f *failure) bool { return pgerr.Conflict(f.err) }

// connectionLost: a statement saw the connection close, and it was not the handler who had it closed, by a context of its
// own or by an argument that cannot be encoded.
func connectionLost(f *failure) bool {
	return f.use.Lost != nil && !ownClosing(f.use.Lost) && !pgerr.OfContext(f.err)
}

// closedByHandler is the same seen from COMMIT, which was not sent then.
func closedByHandler(f *failure) bool {
	return errors.Is(f.err, errConnLost) && f.use.Lost != nil && ownClosing(f.use.Lost)
}

func ownClosing(lost error) bool { return pgerr.OfContext(lost) || pgerr.Unsendable(lost) }

// answered: the server's own answer to COMMIT is the handler's business; a broken connection is not.
func answered(f *failure) bool { return pgerr.State(f.err) != "" && !pgerr.Fatal(f.err) }

// serverAway reports whether the server could not be reached, refused the session, or went away: it is worth waiting for.
func serverAway(err error) bool { return pgerr.Away(err) || errors.Is(err, errConnLost) }

// slow returns the error by which the server has ended the session because the handler let its transaction idle, or took too
// long for all of it.
func slow(f *failure) error {
	for _, err := range []error{f.err, f.use.Lost} {
		if pgerr.TooSlow(err) {
			return err
		}
	}
	return nil
}

// lostToSlowness is the same seen from COMMIT, which was not sent then.
func lostToSlowness(f *failure) bool { return errors.Is(f.err, errConnLost) && slow(f) != nil }

// tooSlow names the limit. The handler runs once: it would be as slow again.
func tooSlow(f *failure) error {
	cause := slow(f)
	limit := "was idle for longer than IdleLimit, or the session's own idle_in_transaction_session_timeout, allows"
	if pgerr.State(cause) == pgerr.TransactionTimeout {
		limit = "took longer than transaction_timeout allows"
	}
	if errors.Is(f.err, cause) {
		return fmt.Errorf("%w: txidem: nothing is stored: the handler's transaction %s", f.err, limit)
	}
	return fmt.Errorf("%w: txidem: nothing is stored: the handler's transaction %s: %w", f.err, limit, cause)
}

func nothingToAsk(f *failure) error {
	return fmt.Errorf("%w: a message without an id leaves nothing to ask for", f.err)
}

func contextEnded(f *failure) error {
	return fmt.Errorf("txidem: not committed, the context ended: %w: %w", f.ctxErr, f.err)
}

func withLost(f *failure) error { return fmt.Errorf("%w: %w", f.err, f.use.Lost) }

func notStored(f *failure) error {
	return fmt.Errorf("txidem: not committed, nothing is stored: %w", f.err)
}
