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

// claimFailed judges an error that came before the handler's statements had a result.
func (d *delivery) claimFailed(ctx context.Context, s *shipment, err error) ending {
	_ = s.close(notClaimed(err) || conflicted(err) || sqlState(err) == stateLockTimeout)
	closed := s.t.conn.Conn().IsClosed()
	switch {
	case notClaimed(err):
		return d.lookInto(ctx, &s.t)
	case ctx.Err() == nil && d.queue.refused(err, closed):
		return failed(fmt.Errorf("txidem: %s of the pipeline was not sent: %w", d.queue.which(err), err), theirs)
	case s.form == open && closed && !passedOver(err):
		d.ran, d.queue.filled = true, false // the statements may have run, and one of them have hidden a COMMIT
		return failed(err, afterHandler(ctx, err, nil, err, closed))
	case s.form == open || passedOver(err):
		return d.notOpened(ctx, d.g.claimError(ctx, false, d.message.id, err), closed)
	default:
		return d.lostTrack(s, err)
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
	return unsendable(err) && q.index(unsent.SQL()) >= 0
}

func (q *queue) index(sql string) int {
	return slices.IndexFunc(q.queries, func(query *pgx.QueuedQuery) bool { return query.SQL == sql })
}

// which names the first statement with the text of the one that was refused, where pgx says which.
func (q *queue) which(err error) string {
	var unsent pgx.ErrPreprocessingBatch
	if !errors.As(err, &unsent) {
		return "a statement"
	}
	return fmt.Sprintf("statement %d", q.index(unsent.SQL())+1)
}

// passedOver reports whether an error that came before the result of COMMIT proves that COMMIT was not reached: the server
// failed on an earlier statement, the statements were not sent at all, or nothing was.
func passedOver(err error) bool {
	var pgErr *pgconn.PgError
	var unsent pgx.ErrPreprocessingBatch
	return errors.As(err, &pgErr) || errors.As(err, &unsent) || pgconn.SafeToRetry(err)
}

// lostTrack is called when the connection broke with a COMMIT on its way.
func (d *delivery) lostTrack(s *shipment, err error) ending {
	d.ran, d.queue.filled = true, false
	return d.afterCommit(s.t.unknown(err), nil)
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

// arrived reads the results of the handler's statements and of COMMIT.
func (d *delivery) arrived(ctx context.Context, s *shipment) ending {
	for i := range d.queue.queries {
		_, err := s.br.Exec()
		if err == nil {
			continue
		}
		_ = s.close(false)
		if !passedOver(err) || d.last(i) && !provesRollback(err) {
			return d.lostTrack(s, err)
		}
		err = fmt.Errorf("txidem: statement %d of the pipeline: %w", i+1, err)
		return failed(err, afterHandler(ctx, err, nil, nil, s.t.conn.Conn().IsClosed()))
	}
	return d.afterCommit(s.t.judge(ctx, s.br.Close()), nil)
}

// last reports whether the result of a statement may be that of the commit too: the simple protocol commits an implicit
// transaction before it answers to the last statement.
func (d *delivery) last(i int) bool { return d.queue.form == bare && i == len(d.queue.queries)-1 }

// errQueuedLate: a callback, or a goroutine, has queued a statement in a batch that had been sent.
var errQueuedLate = errors.New("txidem: a statement was queued when the pipeline had been sent: queue all of them in the handler")

// finish runs the callbacks and sends COMMIT.
func (d *delivery) finish(ctx context.Context, s *shipment) ending {
	start := time.Now()
	err := s.close(false)
	d.told.Handler += time.Since(start)
	if err == nil && d.queue.late() {
		err = errQueuedLate
	}
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
