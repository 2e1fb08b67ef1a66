package txidem

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// form is how a pipeline is made a transaction.
type form int

const (
	bare  form = iota // claim and statements, an implicit transaction that the server commits at the Sync behind them
	block             // BEGIN, claim, statements, COMMIT
	open              // BEGIN, claim, statements; COMMIT is sent when their callbacks have run
)

// queue is one message and what its handler has queued for it. It is the load of a pipeline.
type queue struct {
	*message
	fn       PipelineHandler
	batch    *pgx.Batch // the handler's
	queued   int        // in it, by the handler
	queries  []*pgx.QueuedQuery
	form     form
	doubtful bool // one of them may end the transaction unseen
	filled   bool // queries are to be sent, for the first time or again, and nothing of them has run
}

// fill has the handler queue its statements, unless they are there from an attempt in which nothing of them ran.
func (q *queue) fill(ctx context.Context, told *Delivery) error {
	if q.filled {
		q.queries = copies(q.queries)
		return nil
	}
	b := newBatch()
	if err := told.call(func() error { return q.fn(ctx, b) }); err != nil {
		return err
	}
	q.batch, q.queued = b, b.Len()
	if err := q.inspect(b.QueuedQueries); err != nil {
		return err
	}
	q.form = formOf(q.queries, q.hasID && q.g.implicit)
	q.filled = true
	return nil
}

// inspect takes over the queries that have a statement in them: the others have no result in the simple protocol.
func (q *queue) inspect(queries []*pgx.QueuedQuery) error {
	q.queries, q.doubtful = queries, false
	blanks := false
	for i, query := range queries {
		control := txControl(query.SQL)
		switch {
		case control != "":
			return fmt.Errorf("%w: statement %d of the pipeline is %s: leave it out, the pipeline is a transaction by itself",
				ErrTxControl, i+1, control)
		case copiesIn(query.SQL):
			return fmt.Errorf("txidem: statement %d of the pipeline is COPY FROM STDIN, which has nobody to send the rows: "+
				"use CopyFrom in Process", i+1)
		case !blank(query.SQL):
			q.doubtful = q.doubtful || !contained(query.SQL, query.Arguments)
		case query.Fn != nil:
			return errors.New("txidem: a callback was queued for a text without a statement")
		default:
			blanks = true
		}
	}
	if blanks {
		q.queries = slices.DeleteFunc(slices.Clone(queries), func(query *pgx.QueuedQuery) bool { return blank(query.SQL) })
	}
	return nil
}

// late reports whether something was queued after the handler had returned.
func (q *queue) late() bool { return q.batch.Len() != q.queued }

// copies makes queries that can be sent: pgx keeps in one what it has learned about it on the connection it was sent on.
func copies(queries []*pgx.QueuedQuery) []*pgx.QueuedQuery {
	fresh := make([]*pgx.QueuedQuery, len(queries))
	for i, q := range queries {
		fresh[i] = &pgx.QueuedQuery{SQL: q.SQL, Arguments: q.Arguments, Fn: q.Fn}
	}
	return fresh
}

// formOf chooses the form. Callbacks must run before COMMIT. The implicit transaction is for statements that cannot end
// one: a procedure or a DO block could, and savepoints and locks need a transaction block.
func formOf(queries []*pgx.QueuedQuery, implicit bool) form {
	implicit = implicit && len(queries) > 0
	for _, q := range queries {
		if q.Fn != nil {
			return open
		}
		implicit = implicit && plain(q.SQL, q.Arguments)
	}
	if implicit {
		return bare
	}
	return block
}

// run is the handler for a transaction that is open already: the one in which an unknown COMMIT was found not to have
// taken place.
func (q *queue) run(ctx context.Context, tx pgx.Tx) error {
	b := newBatch()
	if err := q.fn(ctx, b); err != nil {
		return err
	}
	return tx.SendBatch(ctx, b).Close()
}
