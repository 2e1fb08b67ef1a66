// Package pgerr says what an error of PostgreSQL, or of pgx on the way to it, means. Its functions look at the error and at
// nothing else; every SQLSTATE that counts has its name here.
package pgerr

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The SQLSTATEs that are treated in a way of their own. See the appendix "PostgreSQL Error Codes" of its manual.
const (
	Serialization       = "40001"
	Deadlock            = "40P01"
	UndefinedTable      = "42P01"
	InsufficientRight   = "42501"
	WrongType           = "42804" // a column has another type than the prepared statement was made for
	ReadOnly            = "25006"
	IdleInTransaction   = "25P03" // idle_in_transaction_session_timeout has ended the session
	TransactionTimeout  = "25P04" // transaction_timeout has ended the session
	LockNotAvailable    = "55P03" // lock_timeout has passed
	Protocol            = "08P01" // in the simple protocol a NUL or invalid UTF-8 too
	QueryCanceled       = "57014" // statement_timeout, or a cancel from outside
	TooManyConnections  = "53300"
	UnknownDatabase     = "3D000"
	FeatureNotSupported = "0A000" // "cached plan must not change result type" is one
	UnknownStatement    = "26000" // a prepared statement is gone
)

// The classes of SQLSTATEs, their first two characters.
const (
	classConnection    = "08"
	classData          = "22"
	classConstraint    = "23"
	classTransaction   = "25"
	classAuthorization = "28"
	classRollback      = "40"
	classSyntax        = "42"
	classCheckOption   = "44"
	classShutdown      = "57P"
	classPLpgSQL       = "P0"
)

// State returns the SQLSTATE of err, or "". It asks by method, so that the errors of other drivers count too.
func State(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// class returns the class of a SQLSTATE.
func class(state string) string { return state[:min(2, len(state))] }

// Conflict reports whether the transaction lost against another one, and a new transaction can win.
func Conflict(err error) bool {
	state := State(err)
	return state == Serialization || state == Deadlock
}

// Stale reports whether a prepared statement did not fit any more: its table was altered, or DISCARD took it away. pgx
// drops it from its cache when it fails, so that one repetition prepares it anew. Behind a pooler that keeps no prepared
// statements the repetition fails too.
func Stale(err error) bool {
	switch State(err) {
	case FeatureNotSupported, UnknownStatement, WrongType:
		return true
	default:
		return false
	}
}

// StalePlan is Stale for a statement of which nothing is known: only what says that it is the prepared statement that does
// not fit, and not the statement itself.
func StalePlan(err error) bool {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return false
	}
	return pgErr.Code == UnknownStatement || pgErr.Code == FeatureNotSupported && pgErr.Routine == "RevalidateCachedQuery"
}

// Away reports whether the server could not be reached, refused the session, or went away, and is worth waiting for.
func Away(err error) bool {
	var connectErr *pgconn.ConnectError
	if errors.As(err, &connectErr) {
		return refusedForNow(State(err))
	}
	state := State(err)
	return class(state) == classConnection && state != Protocol || state == TooManyConnections ||
		strings.HasPrefix(state, classShutdown)
}

// refusedForNow reports whether an attempt to connect that ended with this SQLSTATE, or "" for none, can succeed later. A
// wrong password, an unknown database and a wrong parameter stay wrong. All else passes: a server that is starting (57P03),
// is full (53300) or lets nobody into the database (55000), and a pooler whose server is away (08P01, 58000, XX000).
func refusedForNow(state string) bool {
	switch class(state) {
	case classAuthorization, classData, classSyntax:
		return false
	default:
		return state != UnknownDatabase
	}
}

// Fatal reports whether the server ended the session with the error.
func Fatal(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.SeverityUnlocalized == "FATAL"
}

// TooSlow reports whether the server ended the session because its transaction was idle, or open, for longer than allowed.
func TooSlow(err error) bool {
	state := State(err)
	return state == IdleInTransaction || state == TransactionTimeout
}

// ProvesRollback reports whether an error of COMMIT proves that the transaction was not committed. An ERROR in one of
// these classes is decided before the server commits: a deferred constraint or trigger, a serialization failure, a
// transaction that was aborted. So is one of a statement that could not be begun, since what was prepared does not fit.
// Other answers, 57014 for one, can follow a commit that took place, and an error of the connection says nothing at all.
func ProvesRollback(err error) bool {
	if errors.Is(err, pgx.ErrTxCommitRollback) {
		return true
	}
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.SeverityUnlocalized != "ERROR" {
		return false
	}
	switch class(pgErr.Code) {
	case classData, classConstraint, classTransaction, classRollback, classSyntax, classCheckOption, classPLpgSQL:
		return true
	default:
		return StalePlan(err)
	}
}

// HasText reports whether the server's error has a text in its message.
func HasText(err error, text string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && strings.Contains(pgErr.Message, text)
}

// OnTable reports whether a lock that could not be had was that of a whole table, as far as the server said: for the lock of
// a row or a key it names the tuple in the error's context.
func OnTable(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Where == ""
}

// Unsent reports whether pgx refused a batch before any statement of it was run: it could not prepare or encode one.
func Unsent(err error) bool {
	var unsent pgx.ErrPreprocessingBatch
	return errors.As(err, &unsent)
}

// Unsendable reports whether pgx could not put a batch on the wire because of what is in it, such as an argument that
// cannot be encoded. It closes the connection then, which looks like a lost one.
func Unsendable(err error) bool {
	var network net.Error
	return Unsent(err) && !errors.As(err, &network) && !errors.Is(err, io.ErrUnexpectedEOF) && !Fatal(err)
}

// OfServer reports whether an error is one that the server sent.
func OfServer(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr)
}

// OfContext reports whether an error came from the end of a context, of the caller's or of one that the handler made.
func OfContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err)
}
