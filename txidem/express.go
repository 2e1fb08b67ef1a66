package txidem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/internal/sqlgen"
)

// express makes the attempt of a pipeline. Its results come back one after the other: BEGIN, the claim, the handler's
// statements, COMMIT. A failure of one of them means that the server has passed over the rest; a connection that breaks
// before the last leaves the outcome unknown, since everything is on its way from the beginning.
func (d *delivery) express(ctx context.Context) ending {
	if err := d.queue.fill(ctx, &d.told); err != nil {
		return failed(err, theirs)
	}
	start := time.Now()
	conn, err := d.g.acquire(ctx)
	if err != nil {
		return d.notOpened(ctx, err, false)
	}
	defer conn.Release()
	s := d.send(ctx, conn)
	defer s.t.rollback(ctx)
	err = s.claim()
	d.told.Claim += time.Since(start)
	if err != nil {
		return d.claimFailed(ctx, &s, err)
	}
	d.ran, d.queue.filled = true, false
	if d.queue.form == open {
		return d.finish(ctx, &s)
	}
	return d.arrived(ctx, &s)
}

// shipment is a pipeline that has been sent.
type shipment struct {
	t    transaction
	b    *pgx.Batch
	br   pgx.BatchResults
	form form
}

// send puts everything on the wire.
func (d *delivery) send(ctx context.Context, conn *pgxpool.Conn) shipment {
	q := &d.queue
	b := newBatch()
	if q.form != bare {
		b.BeginTx(d.g.cfg.TxOptions)
	}
	if d.message.hasID {
		b.Queue(d.g.sql.Pipeline, d.message.id, d.g.consumer, d.g.wait, d.g.idle)
	} else {
		b.Queue(d.g.sql.Mark, d.g.idle)
	}
	b.QueuedQueries = append(b.QueuedQueries, q.queries...)
	if q.form == block {
		b.Queue(sqlgen.Guard)
		b.Queue("commit")
	}
	br := conn.SendBatch(ctx, b)
	// In the bare form there is no transaction to end: one statement's failure, or the Sync, has ended it.
	return shipment{b: b, br: br, form: q.form, t: transaction{conn: conn, tx: br.Tx(), over: q.form == bare}}
}

// claim reads the results up to that of the claim.
func (s *shipment) claim() error {
	if s.form != bare {
		if _, err := s.br.Exec(); err != nil {
			return err
		}
	}
	_, err := s.br.Exec()
	return err
}

// close reads what is left. The statements of a failed claim are in order: pgx would drop all of them from its cache,
// those of the batch at the time of Close, and prepare them anew on the next delivery.
func (s *shipment) close(keepStatements bool) error {
	if keepStatements {
		s.b.QueuedQueries = nil
	}
	return s.br.Close()
}

// claimFailed judges an error that came before the handler's statements had a result.
func (d *delivery) claimFailed(ctx context.Context, s *shipment, err error) ending {
	_ = s.close(notClaimed(err) || conflicted(err) || sqlState(err) == stateLockTimeout)
	closed := s.t.conn.Conn().IsClosed()
	switch {
	case notClaimed(err):
		return d.lookInto(ctx, &s.t)
	case ctx.Err() == nil && d.queue.refused(err, closed):
		return failed(fmt.Errorf("txidem: a statement of the pipeline was not sent: %w", err), theirs)
	case s.form == open || passedOver(err):
		return d.notOpened(ctx, d.g.claimError(ctx, false, d.message.id, err), closed)
	default:
		return d.lostTrack(err)
	}
}

// notClaimed reports whether it was the claim of a pipeline that failed because it made no record.
func notClaimed(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && strings.Contains(pgErr.Message, sqlgen.NotClaimedText)
}

// refused reports whether a statement of the handler was refused before anything was run: by pgx, or by the server that
// was asked to prepare it. An error that is not the server's and leaves the connection open is one of pgx, which says in
// some exec modes only which statement it was.
func (q *queue) refused(err error, closed bool) bool {
	var unsent pgx.ErrPreprocessingBatch
	if !errors.As(err, &unsent) {
		return !closed && sqlState(err) == ""
	}
	return unsendable(err) && slices.ContainsFunc(q.queries, func(query *pgx.QueuedQuery) bool { return query.SQL == unsent.SQL() })
}

// passedOver reports whether an error that came before the result of COMMIT proves that COMMIT was not reached: the server
// failed on an earlier statement, the statements were not sent at all, or nothing was.
func passedOver(err error) bool {
	var pgErr *pgconn.PgError
	var unsent pgx.ErrPreprocessingBatch
	return errors.As(err, &pgErr) || errors.As(err, &unsent) || pgconn.SafeToRetry(err)
}

// lostTrack is called when the connection broke with a COMMIT on its way.
func (d *delivery) lostTrack(err error) ending {
	d.ran, d.queue.filled = true, false
	return d.afterCommit(&commitUnknownError{cause: err}, nil)
}

// lookInto finds out why the claim of a pipeline made no record.
func (d *delivery) lookInto(ctx context.Context, t *transaction) ending {
	before := d.past()
	found, err := d.g.rollbackAndLook(ctx, t, d.message.id)
	if err == nil {
		var outcome Outcome
		if outcome, err = d.g.verdict(found, d.message.id, before); err == nil {
			return ending{outcome: outcome}
		}
	}
	return d.notOpened(ctx, err, t.conn.Conn().IsClosed())
}

// rollbackAndLook ends a failed transaction and looks at the record in one round trip. It goes past pgx: a statement
// that pgx has not prepared yet cannot be prepared before the rollback.
func (g *Guard) rollbackAndLook(ctx context.Context, t *transaction, id string) (record, error) {
	t.over = true
	conn := t.conn.Conn()
	b := &pgconn.Batch{}
	if conn.PgConn().TxStatus() != statusIdle {
		b.ExecParams("rollback", nil, nil, nil, nil)
	}
	b.ExecParams(g.sql.Look, [][]byte{[]byte(id), []byte(g.cfg.Consumer)}, nil, nil, nil)
	results := conn.PgConn().ExecBatch(ctx, b)
	found := noRecord
	var err error
	for results.NextResult() {
		rows := pgx.RowsFromResultReader(conn.TypeMap(), results.ResultReader())
		for rows.Next() {
			found, err = scanRecord(rows)
		}
		err = firstOf(err, rows.Err())
	}
	if err := firstOf(err, results.Close()); err != nil {
		return noRecord, g.explain(ctx, lookingAtRecord, err)
	}
	return found, nil
}

// arrived reads the results of the handler's statements and of COMMIT.
func (d *delivery) arrived(ctx context.Context, s *shipment) ending {
	for i := range d.queue.queries {
		_, err := s.br.Exec()
		if err == nil {
			continue
		}
		_ = s.close(false)
		if !passedOver(err) || d.last(i) && !provesRollback(err) {
			return d.lostTrack(err)
		}
		err = fmt.Errorf("txidem: statement %d of the pipeline: %w", i+1, err)
		return failed(err, afterHandler(ctx, err, nil, nil, s.t.conn.Conn().IsClosed()))
	}
	return d.afterCommit(s.committed(ctx), nil)
}

// last reports whether the result of a statement may be that of the commit too: the simple protocol commits an implicit
// transaction before it answers to the last statement.
func (d *delivery) last(i int) bool { return d.queue.form == bare && i == len(d.queue.queries)-1 }

// committed reads the results from the guard on. Nothing less than an idle connection with every result read is a commit.
func (s *shipment) committed(ctx context.Context) error {
	err := s.br.Close()
	if status := s.t.conn.Conn().PgConn().TxStatus(); err == nil && status != statusIdle {
		err = fmt.Errorf("txidem: the transaction status is %q after COMMIT", status)
	}
	return committed(ctx, err)
}

// finish runs the callbacks and sends COMMIT.
func (d *delivery) finish(ctx context.Context, s *shipment) ending {
	start := time.Now()
	err := s.close(false)
	d.told.Handler += time.Since(start)
	if err == nil {
		s.t.doubtful = true // callbacks are not watched
		return d.afterCommit(s.t.commit(ctx), nil)
	}
	var lost error
	closed := s.t.conn.Conn().IsClosed()
	if closed {
		lost = err
	}
	return failed(err, afterHandler(ctx, err, nil, lost, closed))
}
