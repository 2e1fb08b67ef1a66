package txidem

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/internal/sqlgen"
)

// claimGrace is how much later than InFlightWait the client gives up on a claim by itself. The server's lock_timeout
// comes first in the ordinary case and keeps the connection. It restarts for every copy that takes over, and does not
// cover a lock on the table that is met before the statement runs: this is the bound for those.
const claimGrace = time.Second

// begin sends BEGIN and the claim in one round trip. The transaction it returns is open, whether the claim is ours or not,
// and the caller must end it; after an error there is none.
//
// The race this decides: two deliveries of one message insert the same key. The unique index lets one INSERT through and
// makes the other wait until the first transaction ends. After its COMMIT the other inserts no row, after its ROLLBACK,
// or the death of its connection, the other inserts the row and runs the handler.
func (g *Guard) begin(ctx context.Context, conn *pgxpool.Conn, opts pgx.TxOptions, id string) (*transaction, bool, error) {
	bounded, cancel := context.WithTimeout(ctx, g.cfg.InFlightWait+claimGrace)
	defer cancel()
	t, rows, err := beginWith(bounded, conn, opts, g.sql.Claim, id, g.cfg.Consumer, g.wait, g.idle)
	if err != nil {
		t.rollback(ctx)
		return nil, false, g.claimError(ctx, bounded, id, err)
	}
	return t, rows == 1, nil
}

// beginUnguarded begins the transaction of a message without an id.
func (g *Guard) beginUnguarded(ctx context.Context, conn *pgxpool.Conn) (*transaction, error) {
	t, _, err := beginWith(ctx, conn, g.cfg.TxOptions, g.sql.Mark, g.idle)
	if err != nil {
		t.rollback(ctx)
		return nil, withContext(ctx, "BEGIN", err)
	}
	return t, nil
}

// beginWith sends BEGIN and the first statement of a transaction in one round trip. It returns the transaction in every
// case: after an error it is to be rolled back.
func beginWith(ctx context.Context, conn *pgxpool.Conn, opts pgx.TxOptions, first string, args ...any) (*transaction, int64, error) {
	opts.CommitQuery = sqlgen.Commit
	b := &pgx.Batch{}
	b.BeginTx(opts)
	b.Queue(first, args...)
	br := conn.SendBatch(ctx, b)
	t := &transaction{conn: conn, tx: br.Tx()}
	_, beginErr := br.Exec()
	tag, firstErr := br.Exec()
	return t, tag.RowsAffected(), firstOf(beginErr, firstErr, br.Close())
}

// lookAndRollback finds out why a claim inserted nothing and ends the transaction, in one round trip.
func (g *Guard) lookAndRollback(ctx context.Context, t *transaction, id string) (Outcome, error) {
	b := &pgx.Batch{}
	b.Queue(g.sql.Look, id, g.cfg.Consumer)
	b.Queue("rollback")
	br := t.conn.SendBatch(ctx, b)
	found, err := scanRecord(br.QueryRow())
	if closeErr := br.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		t.rollback(ctx)
		return 0, g.explain(ctx, "look at the record", err)
	}
	return g.verdict(found, id)
}

// record is what was found under the key of a message.
type record int

const (
	noRecord  record = iota
	processed        // some transaction processed the message and committed
	leased           // somebody holds the message and has not processed it
	ours             // the running transaction wrote it
)

// scanner is the one method that a row of pgx and one of database/sql share.
type scanner interface{ Scan(dest ...any) error }

// scanRecord reads the row of the statement Look.
func scanRecord(row scanner) (record, error) {
	var done, own bool
	err := row.Scan(&done, &own)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return noRecord, nil
	case err != nil:
		return noRecord, err
	case own:
		return ours, nil
	case !done:
		return leased, nil
	default:
		return processed, nil
	}
}

// verdict turns what a claim without a row has found into its result. This is the only place that says Duplicate.
func (g *Guard) verdict(found record, id string) (Outcome, error) {
	switch found {
	case processed:
		return Duplicate, nil
	case leased:
		return 0, &InFlightError{ID: id, Consumer: g.cfg.Consumer, Cause: "it is leased"}
	case ours:
		return 0, g.keyed(ErrAlreadyClaimed, id)
	default:
		return 0, g.keyed(ErrNoRecord, id)
	}
}
