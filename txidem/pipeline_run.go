package txidem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/txidem/txidem-go/internal/handlertx"
	"github.com/txidem/txidem-go/internal/pgerr"
	"github.com/txidem/txidem-go/internal/sqlgen"
)

// sentPipeline is a pipeline on the wire.
type sentPipeline struct {
	t    *transaction
	br   pgx.BatchResults
	form form
}

// send puts everything on the wire.
func (p *pipeline) send(ctx context.Context, t *transaction) sentPipeline {
	// In the implicit form there is no transaction to end: one statement's failure, or the Sync, has ended it.
	t.over, t.doubtful = p.form == formImplicit, p.doubtful
	if p.form != formImplicit {
		t.first.begin(&p.g.beginning)
	}
	if p.hasID {
		t.first.queue(p.g.sql.Pipeline, p.id, p.g.consumer, p.g.wait, p.g.idle)
	} else {
		t.first.queue(p.g.sql.Mark, p.g.idle)
	}
	b := &t.first.batch
	b.QueuedQueries = append(b.QueuedQueries, p.queries...)
	if p.form == formBlock {
		b.Queue(sqlgen.AssertMark)
		b.Queue(sqlgen.Commit)
	}
	return sentPipeline{t: t, br: t.send(ctx), form: p.form}
}

// claim reads the results up to that of the claim.
func (s *sentPipeline) claim() error {
	if s.form != formImplicit {
		if _, err := s.br.Exec(); err != nil {
			return err
		}
	}
	_, err := s.br.Exec()
	return err
}

// close reads what is left. The statements of a failed claim are in order: pgx would drop all of them from its cache,
// those of the batch at the time of Close, and prepare them anew on the next delivery.
func (s *sentPipeline) close(keepStatements bool) error {
	if keepStatements {
		s.t.first.batch.QueuedQueries = nil
	}
	return s.br.Close()
}

func (s *sentPipeline) conn() *pgx.Conn { return s.t.conn.Conn() }

// attempt sends a pipeline. Its results come back one after the other: BEGIN, the claim, the handler's
// statements, COMMIT. A failure of one of them means that the server has passed over the rest; a connection that breaks
// before the last leaves the outcome unknown, since everything is on its way from the beginning.
func (p *pipeline) attempt(ctx context.Context, r *run) attemptResult {
	if r.unknown != nil {
		return r.transact(ctx, p)
	}
	if err := p.fill(ctx, r); err != nil {
		return notQueued(err)
	}
	start := time.Now()
	conn, err := p.g.acquire(ctx)
	if err != nil {
		r.event.Claim += time.Since(start)
		return r.notOpened(ctx, err, false)
	}
	defer conn.Release()
	r.tx = transaction{conn: conn}
	defer r.tx.rollback(ctx)
	s := p.send(ctx, &r.tx)
	err = s.claim()
	r.event.Claim += time.Since(start)
	if err != nil {
		return p.claimFailed(ctx, r, &s, err)
	}
	p.mayHaveRun(r)
	if p.form == formCallbacks {
		return p.finish(ctx, r, &s)
	}
	return p.arrived(ctx, r, &s)
}

// notQueued is the result when nothing was sent.
func notQueued(err error) attemptResult {
	d, err := decide(failure{phase: phaseQueue, err: err})
	return attemptResult{err: err, decision: d}
}

// mayHaveRun is noted when the server may have got to the handler's statements.
func (p *pipeline) mayHaveRun(r *run) { r.handlerRan, p.filled = true, false }

// claimFailed judges an error that came before the handler's statements had a result.
func (p *pipeline) claimFailed(ctx context.Context, r *run, s *sentPipeline, err error) attemptResult {
	_ = s.close(notClaimed(err) || pgerr.Conflict(err) || waitedInVain(err))
	closed := s.t.conn.Conn().IsClosed()
	switch {
	case notClaimed(err):
		return p.lookInto(ctx, r, s.t)
	case ctx.Err() == nil && p.refused(err, closed):
		return notQueued(fmt.Errorf("txidem: %s of the pipeline was not sent: %w", p.which(err), err))
	case s.form == formCallbacks && closed && !passedOver(err):
		p.mayHaveRun(r) // and one of the statements may have hidden a COMMIT
		return r.handlerFailed(ctx, err, handlertx.Use{Lost: err}, s.conn())
	case s.form == formCallbacks || passedOver(err):
		return r.notOpened(ctx, p.g.claimError(ctx, false, p.id, err), closed)
	default:
		return p.commitUnknown(ctx, r, s, err)
	}
}

// notClaimed reports whether it was the claim of a pipeline that failed because it made no record.
func notClaimed(err error) bool { return pgerr.HasText(err, sqlgen.NotClaimedText) }

// refused reports whether a statement of the handler was refused before anything was run: by pgx, or by the server that
// was asked to prepare it. An error that is not the server's and leaves the connection open is one of pgx, which says in
// some exec modes only which statement it was.
func (p *pipeline) refused(err error, closed bool) bool {
	var unsent pgx.ErrPreprocessingBatch
	if !errors.As(err, &unsent) {
		return !closed && pgerr.State(err) == ""
	}
	return pgerr.Unsendable(err) && p.index(unsent.SQL()) >= 0
}

func (p *pipeline) index(sql string) int {
	return slices.IndexFunc(p.queries, func(query *pgx.QueuedQuery) bool { return query.SQL == sql })
}

// which names the first statement with the text of the one that was refused, where pgx says which.
func (p *pipeline) which(err error) string {
	var unsent pgx.ErrPreprocessingBatch
	if !errors.As(err, &unsent) {
		return "a statement"
	}
	return fmt.Sprintf("statement %d", p.index(unsent.SQL())+1)
}

// passedOver reports whether an error that came before the result of COMMIT proves that COMMIT was not reached: the server
// failed on an earlier statement, the statements were not sent at all, or nothing was.
func passedOver(err error) bool {
	return pgerr.OfServer(err) || pgerr.Unsent(err) || pgconn.SafeToRetry(err)
}

// commitUnknown is called when the connection broke with a COMMIT on its way.
func (p *pipeline) commitUnknown(ctx context.Context, r *run, s *sentPipeline, err error) attemptResult {
	p.mayHaveRun(r)
	return r.afterCommit(ctx, s.t.unknown(err), handlertx.Use{})
}

// lookInto finds out why the claim of a pipeline made no record.
func (p *pipeline) lookInto(ctx context.Context, r *run, t *transaction) attemptResult {
	before := r.history()
	found, err := p.g.rollbackAndLook(ctx, t, p.id)
	if err == nil {
		var outcome Outcome
		if outcome, err = p.g.verdict(found, p.id, before); err == nil {
			return attemptResult{outcome: outcome}
		}
	}
	return r.notOpened(ctx, err, t.conn.Conn().IsClosed())
}

// arrived reads the results of the handler's statements and of COMMIT.
func (p *pipeline) arrived(ctx context.Context, r *run, s *sentPipeline) attemptResult {
	for i := range p.queries {
		_, err := s.br.Exec()
		if err == nil {
			continue
		}
		_ = s.close(false)
		if !passedOver(err) || p.last(i) && !pgerr.ProvesRollback(err) {
			return p.commitUnknown(ctx, r, s, err)
		}
		err = fmt.Errorf("txidem: statement %d of the pipeline: %w", i+1, err)
		return r.handlerFailed(ctx, err, handlertx.Use{}, s.conn())
	}
	return r.afterCommit(ctx, s.t.judge(ctx, s.br.Close()), handlertx.Use{})
}

// last reports whether the result of a statement may be that of the commit too: the simple protocol commits an implicit
// transaction before it answers to the last statement.
func (p *pipeline) last(i int) bool { return p.form == formImplicit && i == len(p.queries)-1 }

// errQueuedLate: a callback, or a goroutine, has queued a statement in a batch that had been sent.
var errQueuedLate = handlertx.Misuse("txidem: a statement was queued when the pipeline had been sent: " +
	"queue all of them in the handler")

// finish runs the callbacks and sends COMMIT.
func (p *pipeline) finish(ctx context.Context, r *run, s *sentPipeline) attemptResult {
	start := time.Now()
	err := s.close(false)
	r.event.Handler += time.Since(start)
	if err == nil && p.late() {
		err = errQueuedLate
	}
	if err == nil {
		s.t.doubtful = true // callbacks are not watched
		return r.afterCommit(ctx, s.t.commit(ctx), handlertx.Use{})
	}
	var use handlertx.Use
	if s.conn().IsClosed() {
		use.Lost = err
	}
	return r.handlerFailed(ctx, err, use, s.conn())
}
