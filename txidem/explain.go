package txidem

import (
	"context"
	"errors"
	"fmt"

	"github.com/txidem/txidem-go/internal/pgerr"
)

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
