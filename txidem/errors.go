package txidem

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The errors of this package, for errors.Is. An error that the handler returned comes back as it is, or first in a chain.
var (
	// ErrInvalidID: the message id cannot be stored, or is empty and [Config.RequireID] is set. Nothing was sent to the
	// server and the handler did not run. Permanent: see [*IDError] for the reason.
	ErrInvalidID = errors.New("txidem: invalid message id")

	// ErrInFlight: another copy of the message was being processed for the whole of [Config.InFlightWait], or somebody holds
	// it under a lease, or the table was locked or the server silent for as long. This attempt did not run the handler, or
	// what it queued in a pipeline, and nothing is held: have the message redelivered.
	ErrInFlight = errors.New("txidem: message is in flight")

	// ErrAlreadyClaimed: the running transaction has claimed this message itself, as when a guard is used inside a guard
	// with the same consumer. A mistake in the program, and never a duplicate: the work is not committed yet.
	ErrAlreadyClaimed = errors.New("txidem: message already claimed in this transaction")

	// ErrCommitUnknown: the connection broke while COMMIT was under way and it could not be found out whether the
	// transaction was committed. Have the message redelivered: if it was, the redelivery is a Duplicate. For a message
	// without an id nothing can find out, and a redelivery runs the handler again.
	ErrCommitUnknown = errors.New("txidem: outcome of COMMIT is unknown")

	// ErrTxControl: the handler ended the transaction, or tried to: Commit and Rollback belong to txidem. Nothing is stored
	// but what a hidden COMMIT of the handler stored itself, and the record with it: the redelivery is then a Duplicate.
	ErrTxControl = errors.New("txidem: the handler must not end the transaction")

	// ErrTxAborted: a statement of the handler failed on the server and the handler returned nil all the same. PostgreSQL
	// would have turned the COMMIT into a rollback, so it was not sent. Nothing is stored.
	ErrTxAborted = errors.New("txidem: the transaction is aborted")

	// ErrTxBusy: the handler returned while a query, batch or copy on the transaction was still open: rows not closed, or
	// a goroutine still at work. Nothing is stored.
	ErrTxBusy = errors.New("txidem: the transaction is still in use")

	// ErrNoTable: the record table does not exist. Apply the migrations.
	ErrNoTable = errors.New("txidem: record table does not exist")

	// ErrNoRecord: the claim inserted nothing and there is no record either: the record was deleted at this very moment, or
	// a trigger, rule or row security policy on the table keeps rows out. Nothing of the handler's has run.
	ErrNoRecord = errors.New("txidem: claim made no record")
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

// InFlightError says which message was in flight, and for how long the claim had waited at most. errors.Is(err,
// ErrInFlight) holds for it.
type InFlightError struct {
	ID       string
	Consumer string
	Wait     time.Duration // the bound that was in force; 0 for a lease, which nobody waits for
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

func (e *ConfigError) Error() string {
	return e.Field + " " + e.Problem + ": correct the Config given to txidem"
}

// shown quotes an id for an error text and cuts it to a length that fits a log line.
func shown(id string) string {
	const most = 64
	if len(id) <= most {
		return fmt.Sprintf("%q", id)
	}
	return fmt.Sprintf("%q…", strings.ToValidUTF8(id[:most], ""))
}
