package txidem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/txidem/txidem-go/internal/sqlgen"
)

// The SQLSTATEs that txidem treats in a way of their own.
const (
	stateSerialization     = "40001"
	stateDeadlock          = "40P01"
	stateUndefinedTable    = "42P01"
	stateInsufficientRight = "42501"
	stateReadOnly          = "25006"
	stateLockTimeout       = "55P03"
	stateTooManyConns      = "53300"
	stateProtocol          = "08P01" // in the simple protocol a NUL or invalid UTF-8 too
)

// sqlState returns the SQLSTATE of err, or "". It asks by method, so that the errors of other drivers, met in joined
// transactions, count too.
func sqlState(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// claimError translates an error of the claim. expired says that it took longer than claimTime.
func (g *Guard) claimError(ctx context.Context, expired bool, id string, err error) error {
	if expired && ctx.Err() == nil {
		return g.inFlight(id, "no answer to the claim: copies took over from each other, the table is locked, or the server is away")
	}
	if sqlState(err) == stateLockTimeout {
		return g.lockedOut(id, err)
	}
	return g.explain(ctx, "claim", err)
}

// explain adds to an error of one of our statements what was being done and, where it is known, the next step.
func (g *Guard) explain(ctx context.Context, doing string, err error) error {
	switch sqlState(err) {
	case stateUndefinedTable:
		return g.noTable(err)
	case stateInsufficientRight:
		return fmt.Errorf("txidem: %s: %w: the role needs USAGE on schema %q and SELECT, INSERT, DELETE on table %q",
			doing, err, g.cfg.Schema, g.cfg.Table)
	case stateReadOnly:
		return fmt.Errorf("txidem: %s: %w: the session is on a standby or has default_transaction_read_only set", doing, err)
	default:
		return withContext(ctx, doing, err)
	}
}

// lockedOut says what a lock_timeout waited for. The server names the tuple in Where when it was the key.
func (g *Guard) lockedOut(id string, err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Where == "" {
		return g.inFlight(id, "the table was locked the whole wait long, by a migration perhaps")
	}
	e := g.inFlight(id, "a copy of it was being processed the whole wait long")
	e.copy = true
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

// provesRollback reports whether an error of COMMIT proves that the transaction was not committed. An ERROR in one of
// these classes is decided before the server commits: a deferred constraint or trigger, a serialization failure, a
// transaction that was aborted. Other answers, 57014 for one, can follow a commit that took place, and an error of the
// connection says nothing at all.
func provesRollback(err error) bool {
	if errors.Is(err, pgx.ErrTxCommitRollback) {
		return true
	}
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.SeverityUnlocalized != "ERROR" {
		return false
	}
	switch pgErr.Code[:min(2, len(pgErr.Code))] {
	case "22", "23", "25", "40", "42", "44", "P0":
		return true
	default:
		return false
	}
}

// endedBehindUs reports whether COMMIT found that the transaction is not the one that was begun.
func endedBehindUs(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && strings.Contains(pgErr.Message, sqlgen.GuardText)
}

// conflicted reports whether the transaction lost against another one, and a new transaction can win.
func conflicted(err error) bool {
	state := sqlState(err)
	return state == stateSerialization || state == stateDeadlock
}

// stale reports whether a prepared statement did not fit any more: its table was altered, or DISCARD took it away. pgx
// drops it from its cache when it fails, so that one repetition prepares it anew. Behind a pooler that keeps no prepared
// statements the repetition fails too.
func stale(err error) bool {
	switch sqlState(err) {
	case "0A000", "26000", "42804":
		return true
	default:
		return false
	}
}

// serverAway reports whether the server could not be reached, refused the session, or went away: it is worth waiting for.
// A wrong password or database is not.
func serverAway(err error) bool {
	if state := sqlState(err); state != "" {
		return strings.HasPrefix(state, "08") && state != stateProtocol || strings.HasPrefix(state, "57P") || state == stateTooManyConns
	}
	var connectErr *pgconn.ConnectError
	return errors.As(err, &connectErr) || errors.Is(err, errConnLost)
}

// fatal reports whether the server ended the session with the error.
func fatal(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.SeverityUnlocalized == "FATAL"
}

// unsendable reports whether pgx could not put a batch on the wire because of what is in it, such as an argument that
// cannot be encoded. It closes the connection then, which looks like a lost one.
func unsendable(err error) bool {
	var unsent pgx.ErrPreprocessingBatch
	var network net.Error
	return errors.As(err, &unsent) && !errors.As(err, &network) && !errors.Is(err, io.ErrUnexpectedEOF) && !fatal(err)
}

// ofContext reports whether an error came from the end of a context, of the caller's or of one that the handler made.
func ofContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err)
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
