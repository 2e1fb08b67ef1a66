package txidem

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/txidem/txidem-go/internal/handlertx"
	"github.com/txidem/txidem-go/internal/sqlgen"
)

// record is what was found under the key of a message.
type record int

const (
	recordNone      record = iota
	recordProcessed        // some transaction processed the message and committed
	recordHeld             // processed_at is NULL: somebody holds the message and has not processed it
	recordOurs             // the running transaction wrote it
)

// scanner is the one method that a row of pgx and one of database/sql share.
type scanner interface{ Scan(dest ...any) error }

// scanRecord reads the row of the statement Look.
func scanRecord(row scanner) (record, error) {
	var done, own bool
	err := row.Scan(&done, &own)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return recordNone, nil
	case err != nil:
		return recordNone, err
	default:
		return recordOf(done, own), nil
	}
}

// recordOf reads the two columns of a row that is there.
func recordOf(done, own bool) record {
	switch {
	case own:
		return recordOurs
	case !done:
		return recordHeld
	default:
		return recordProcessed
	}
}

// history is what the earlier attempts of a delivery can have left behind.
type history int

const (
	historyNone       history = iota // the handler did not run
	historyRan                       // it ran, and COMMIT was not sent or was refused
	historyCommitSent                // COMMIT was sent and its outcome is unknown
	historyDoubtful                  // the same, and the handler may have committed by itself: a record proves too little
)

// errOvertaken: a record appeared between two attempts of one delivery, and no COMMIT of ours can have made it. A copy of
// the message may have been processed meanwhile, or the handler has committed half its work by a hidden COMMIT. What an
// attempt may have left is not acked as a duplicate; the redelivery is one in both cases.
var errOvertaken = errors.New("txidem: the message was recorded as processed while its handler was to run again, " +
	"by a copy of it or by a COMMIT of the handler's own: have it redelivered")

// verdict turns what a claim without a row has found into its result. Whether a claimed-before message is a duplicate is
// decided here and nowhere else.
func (g *Guard) verdict(found record, id string, before history) (Outcome, error) {
	switch {
	case found == recordHeld:
		return 0, &InFlightError{ID: id, Consumer: g.cfg.Consumer, Cause: "somebody holds it, and has not processed it"}
	case found == recordOurs:
		return 0, g.keyed(ErrAlreadyClaimed, id)
	case found == recordNone:
		return 0, g.keyed(ErrNoRecord, id)
	case before == historyCommitSent:
		return Processed, nil
	case before == historyRan, before == historyDoubtful:
		return 0, g.keyed(errOvertaken, id)
	default:
		return Duplicate, nil
	}
}

// lookingAtRecord says in an error what was being done.
const lookingAtRecord = "look at the record"

// lookAndRollback finds out why a claim inserted nothing and ends the transaction, in one round trip.
func (g *Guard) lookAndRollback(ctx context.Context, t *transaction, id string) (record, error) {
	b := newBatch()
	b.Queue(g.sql.Look, id, g.consumer)
	b.Queue(sqlgen.Rollback)
	br := t.conn.SendBatch(ctx, b)
	found, err := scanRecord(br.QueryRow())
	if err := cmp.Or(err, br.Close()); err != nil {
		t.rollback(ctx)
		return recordNone, g.explain(ctx, lookingAtRecord, err)
	}
	return found, nil
}

// lookMany looks at the records of several messages, and ends the transaction in the same round trip when over is set.
func (g *Guard) lookMany(ctx context.Context, t *transaction, ids []string, over bool) (map[string]record, error) {
	b := newBatch()
	found := make(map[string]record, len(ids))
	b.Queue(g.sql.LookMany, ids, g.consumer).Query(func(rows pgx.Rows) error {
		var id string
		var done, own bool
		_, err := pgx.ForEachRow(rows, []any{&id, &done, &own}, func() error {
			found[id] = recordOf(done, own)
			return nil
		})
		return err
	})
	if over {
		b.Queue(sqlgen.Rollback)
	}
	if err := t.conn.SendBatch(ctx, b).Close(); err != nil {
		return nil, g.explain(ctx, lookingAtRecord, err)
	}
	return found, nil
}

// rollbackAndLook ends a failed transaction and looks at the record in one round trip. It goes past pgx: a statement
// that pgx has not prepared yet cannot be prepared before the rollback.
func (g *Guard) rollbackAndLook(ctx context.Context, t *transaction, id string) (record, error) {
	t.over = true
	conn := t.conn.Conn()
	b := &pgconn.Batch{}
	if conn.PgConn().TxStatus() != handlertx.StatusIdle {
		b.ExecParams(sqlgen.Rollback, nil, nil, nil, nil)
	}
	b.ExecParams(g.sql.Look, [][]byte{[]byte(id), []byte(g.cfg.Consumer)}, nil, nil, nil)
	results := conn.PgConn().ExecBatch(ctx, b)
	found := recordNone
	var err error
	for results.NextResult() {
		rows := pgx.RowsFromResultReader(conn.TypeMap(), results.ResultReader())
		for rows.Next() {
			found, err = scanRecord(rows)
		}
		err = cmp.Or(err, rows.Err())
	}
	if err := cmp.Or(err, results.Close()); err != nil {
		return recordNone, g.explain(ctx, lookingAtRecord, err)
	}
	return found, nil
}
