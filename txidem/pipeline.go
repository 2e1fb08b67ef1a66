package txidem

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/internal/handlertx"
	"github.com/txidem/txidem-go/internal/sqltext"
)

// PipelineHandler queues the statements of one message in b. See [Guard.Pipeline].
type PipelineHandler = func(ctx context.Context, b *pgx.Batch) error

// Pipeline is [Guard.Process] for a handler that knows its statements in advance: claim, statements and commit travel in one
// round trip, where Process takes two and one for each statement. fn queues the statements in b and sends nothing itself. It
// runs before it is known whether the message is new, so that it must do nothing else; with an error of fn nothing is sent.
// Choose it for handlers that write and need no answer before their last statement, where the round trips to the server
// count.
//
// The results are those of Process. The error of a statement has its number in it. fn is called once for each run of its
// statements: again, with a new batch, after a conflict or a lost connection. See "Pipelines" in the package's documentation
// for statements with callbacks, for what is refused, and for two bounds that are weaker than in Process.
//
// Pipeline is safe for concurrent use.
func (g *Guard) Pipeline(ctx context.Context, id string, fn PipelineHandler, opts ...Option) (Outcome, error) {
	if fn == nil {
		return 0, errors.New("txidem: Pipeline needs a handler, got nil")
	}
	d := &struct {
		run      run
		pipeline pipeline
	}{} // one allocation
	d.pipeline = pipeline{single: single{g: g, id: id}, fn: fn}
	d.run.mode = &d.pipeline
	return d.run.observed(ctx, &d.pipeline.single, opts)
}

// WrapPipeline makes a broker handler from h, as [Wrap] does, for a handler that queues its statements. See
// [Guard.Pipeline] for what h may queue. It panics when g, id or h is nil. The result is safe for concurrent use if h is.
func WrapPipeline[M any](
	g *Guard, id func(M) string, h func(context.Context, *pgx.Batch, M) error, opts ...Option,
) func(context.Context, M) error {
	if g == nil || id == nil || h == nil {
		panic("txidem: WrapPipeline needs a guard, an id function and a handler")
	}
	return func(ctx context.Context, msg M) error {
		_, err := g.Pipeline(ctx, id(msg), func(ctx context.Context, b *pgx.Batch) error { return h(ctx, b, msg) }, opts...)
		return err
	}
}

// form is how a pipeline is made a transaction.
type form int

const (
	formImplicit  form = iota // claim and statements, an implicit transaction that the server commits at the Sync behind them
	formBlock                 // BEGIN, claim, statements, COMMIT
	formCallbacks             // BEGIN, claim, statements; COMMIT is sent when their callbacks have run
)

// pipeline is the mode of one message and what its handler has queued for it. Where the outcome of a COMMIT is to be found
// out first, it is a single message whose handler sends what it queues.
type pipeline struct {
	single
	fn       PipelineHandler
	first    roomyBatch // room for the first one that the handler fills
	batch    *pgx.Batch // the handler's
	queued   int        // in it, by the handler
	queries  []*pgx.QueuedQuery
	form     form
	doubtful bool // one of them may end the transaction unseen
	filled   bool // queries are to be sent, for the first time or again, and nothing of them has run
}

// fill has the handler queue its statements, unless they are there from an attempt in which nothing of them ran.
func (p *pipeline) fill(ctx context.Context, r *run) error {
	if p.filled {
		p.queries = copies(p.queries)
		return nil
	}
	room := &p.first
	if p.batch != nil {
		room = new(roomyBatch) // the one that the handler had before may still be in its hands
	}
	b := room.empty()
	holding := r.hold(ctx)
	if err := r.event.call(holding, func() error { return p.fn(holding, b) }); err != nil {
		return err
	}
	p.batch, p.queued = b, b.Len()
	if err := p.inspect(b.QueuedQueries); err != nil {
		return err
	}
	p.form = formOf(p.queries, p.hasID && p.g.implicit)
	p.filled = true
	return nil
}

// inspect takes over the queries that have a statement in them: the others have no result in the simple protocol.
func (p *pipeline) inspect(queries []*pgx.QueuedQuery) error {
	p.queries, p.doubtful = queries, false
	blanks := false
	for i, query := range queries {
		control := sqltext.Control(query.SQL)
		switch {
		case control != "":
			return fmt.Errorf("%w: statement %d of the pipeline is %s: leave it out, the pipeline is a transaction by itself",
				ErrTxControl, i+1, control)
		case sqltext.CopiesIn(query.SQL):
			return handlertx.Misuse(fmt.Sprintf("txidem: statement %d of the pipeline is COPY FROM STDIN, which has nobody to send "+
				"the rows: use CopyFrom in Process", i+1))
		case !sqltext.Blank(query.SQL):
			p.doubtful = p.doubtful || !sqltext.Contained(query.SQL, query.Arguments)
		case query.Fn != nil:
			return handlertx.Misuse("txidem: a callback was queued for a text without a statement")
		default:
			blanks = true
		}
	}
	if blanks {
		p.queries = slices.DeleteFunc(slices.Clone(queries), func(query *pgx.QueuedQuery) bool { return sqltext.Blank(query.SQL) })
	}
	return nil
}

// late reports whether something was queued after the handler had returned.
func (p *pipeline) late() bool { return p.batch.Len() != p.queued }

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
			return formCallbacks
		}
		implicit = implicit && sqltext.Plain(q.SQL, q.Arguments)
	}
	if implicit {
		return formImplicit
	}
	return formBlock
}

// handle is the handler for a transaction that is open already: the one in which an unknown COMMIT was found not to have
// taken place.
func (p *pipeline) handle(ctx context.Context, tx *handlertx.Tx) error {
	b := newBatch()
	if err := p.fn(ctx, b); err != nil {
		return err
	}
	return tx.SendBatch(ctx, b).Close()
}
