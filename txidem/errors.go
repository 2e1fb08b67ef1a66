package txidem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/txidem/txidem-go/internal/handlertx"
	"github.com/txidem/txidem-go/internal/pgerr"
)

// The errors of this package, for errors.Is. An error that the handler returned comes back as it is, or first in a chain.
var (
	// ErrInvalidID is returned when the message id cannot be stored, or is empty and [Config.RequireID] is set. Nothing was
	// sent to the server and the handler did not run. Not [Retryable]; an [*IDError] has the reason.
	ErrInvalidID = errors.New("txidem: invalid message id")

	// ErrInFlight is returned when another copy of the message was being processed for the whole of [Config.InFlightWait], or
	// the record says that somebody holds the message, or the table was locked or the server silent for as long. The
	// handler did not run, or nothing of what it queued in a pipeline, and nothing is held: have the message redelivered.
	ErrInFlight = errors.New("txidem: message is in flight")

	// ErrCommitUnknown is returned when the connection broke while COMMIT was under way and it could not be found out whether
	// the transaction was committed. Have the message redelivered: if it was, the redelivery is a Duplicate. For a message
	// without an id nothing can find out, and a redelivery runs the handler again.
	ErrCommitUnknown = errors.New("txidem: outcome of COMMIT is unknown")

	// ErrTxAborted is returned when a statement of the handler failed on the server and the handler returned nil all the same.
	// PostgreSQL would have turned the COMMIT into a rollback, so it was not sent. Nothing is stored.
	ErrTxAborted = errors.New("txidem: the transaction is aborted")

	// ErrNoTable is returned when the record table does not exist. Apply the migrations.
	ErrNoTable = errors.New("txidem: record table does not exist")

	// ErrNoRecord is returned when the claim inserted nothing and there is no record either: the record was deleted at this
	// very moment, or a trigger, rule or row security policy on the table keeps rows out. The handler did not run, or
	// nothing of what it queued in a pipeline.
	ErrNoRecord = errors.New("txidem: claim made no record")
)

// The mistakes of the program. A delivery that ends in one stores nothing, unless it says so, and is not [Retryable]: the
// next one would end in the same way.
var (
	// ErrMisuse is what every mistake of the program is: those below, COPY FROM STDIN or a callback for an empty text in a
	// pipeline, and a statement that was queued when the pipeline had been sent.
	ErrMisuse = handlertx.ErrMisuse

	// ErrTxControl is returned when the handler ended the transaction, or tried to: Commit and Rollback belong to txidem.
	// Nothing is stored but what a hidden COMMIT of the handler stored itself, and the record with it: the redelivery is then a
	// Duplicate.
	ErrTxControl = handlertx.ErrTxControl

	// ErrTxBusy is returned when the handler used the transaction twice at a time: it began a statement while the rows or
	// results of another were open, or from another goroutine, or returned before they were closed. Nothing is stored.
	ErrTxBusy = handlertx.ErrTxBusy

	// ErrAlreadyClaimed is returned when the message is claimed a second time by its own handler, or in a transaction that
	// has claimed it already. It is never a duplicate: the work is not committed yet.
	ErrAlreadyClaimed = handlertx.Misuse("txidem: message already claimed in this transaction")
)

// IDError says why a message id was refused. errors.Is(err, ErrInvalidID) holds for it.
type IDError struct {
	ID      string // the id, verbatim: it may be invalid UTF-8
	Problem string // what is wrong with it
}

func (e *IDError) Error() string {
	return fmt.Sprintf("%v: id %s %s: fix the producer, or route the message to a dead letter queue",
		ErrInvalidID, shown(e.ID), e.Problem)
}

// Is makes errors.Is(err, ErrInvalidID) true.
func (e *IDError) Is(target error) bool { return target == ErrInvalidID }

// InFlightError says which message was in flight. errors.Is(err, ErrInFlight) holds for it.
type InFlightError struct {
	ID       string
	Consumer string
	Wait     time.Duration // Config.InFlightWait, or 0 when the record says that somebody holds the message
	Cause    string        // what held it, as far as the server said

	copy bool // it was a copy of the message, as the server said
}

func (e *InFlightError) Error() string {
	return fmt.Sprintf("%v: id %s, consumer %q: %s: have it redelivered", ErrInFlight, shown(e.ID), e.Consumer, e.Cause)
}

// Is makes errors.Is(err, ErrInFlight) true.
func (e *InFlightError) Is(target error) bool { return target == ErrInFlight }

// ConfigError says which field of a Config was refused.
type ConfigError struct {
	Field   string // the field's name
	Problem string // what is wrong with it
}

func (e *ConfigError) Error() string { return "txidem: Config: " + e.Field + " " + e.Problem }

// claimError translates an error of the claim. expired says that it took longer than claimTime.
func (g *Guard) claimError(ctx context.Context, expired bool, id string, err error) error {
	if expired && ctx.Err() == nil {
		return g.inFlight(id, "no answer to the claim: copies took over from each other, the table is locked, "+
			"or the server is away")
	}
	if waitedInVain(err) && ctx.Err() == nil {
		return g.lockedOut(id, err)
	}
	return g.explain(ctx, "claim", err)
}

// waitedInVain reports whether the server has ended a statement's wait for a lock: by lock_timeout, or by a
// statement_timeout that is shorter, or because somebody canceled it.
func waitedInVain(err error) bool {
	state := pgerr.State(err)
	return state == pgerr.LockNotAvailable || state == pgerr.QueryCanceled
}

// lockedOut says what a claim waited for in vain.
func (g *Guard) lockedOut(id string, err error) error {
	onTable, canceled := pgerr.OnTable(err), pgerr.State(err) == pgerr.QueryCanceled
	cause := "a copy of it is being processed"
	switch {
	case onTable && canceled:
		cause = "the claim was canceled before it had an answer, by a short statement_timeout perhaps"
	case onTable:
		cause = "the table is locked, by a migration perhaps"
	case canceled:
		cause += ", and statement_timeout, or a cancel, has ended the wait"
	}
	e := g.inFlight(id, cause)
	e.copy = !onTable
	return e
}

// ofCopy reports whether a message was in flight because of a copy of it, and not of a table that was locked.
func ofCopy(err error) bool {
	var inFlight *InFlightError
	return errors.As(err, &inFlight) && inFlight.copy
}

func (g *Guard) inFlight(id, cause string) *InFlightError {
	return &InFlightError{ID: id, Consumer: g.cfg.Consumer, Wait: g.cfg.InFlightWait, Cause: cause}
}

// explain adds to an error of one of our statements what was being done and, where it is known, the next step.
func (g *Guard) explain(ctx context.Context, doing string, err error) error {
	switch pgerr.State(err) {
	case pgerr.UndefinedTable:
		return g.noTable(err)
	case pgerr.InsufficientRight:
		return fmt.Errorf("txidem: %s: %w: the role needs USAGE on schema %q and SELECT, INSERT, DELETE on table %q",
			doing, err, g.cfg.Schema, g.cfg.Table)
	case pgerr.ReadOnly:
		return fmt.Errorf("txidem: %s: %w: the session is on a standby or has default_transaction_read_only set", doing, err)
	default:
		return withContext(ctx, doing, err)
	}
}

func (g *Guard) noTable(err error) error {
	return fmt.Errorf("%w: %w: apply the migrations to schema %q, or correct Schema and Table (%q)",
		ErrNoTable, err, g.cfg.Schema, g.cfg.Table)
}

// keyed adds the key to one of the package's errors.
func (g *Guard) keyed(err error, id string) error {
	return fmt.Errorf("%w: id %s, consumer %q", err, shown(id), g.cfg.Consumer)
}

// withContext says what was being done, and makes sure that an ended context is found in the chain.
func withContext(ctx context.Context, doing string, err error) error {
	if ctxErr := ctx.Err(); ctxErr != nil && !errors.Is(err, ctxErr) {
		return fmt.Errorf("txidem: %s: %w: %w", doing, ctxErr, err)
	}
	return fmt.Errorf("txidem: %s: %w", doing, err)
}
