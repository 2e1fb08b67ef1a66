package worker

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5"
)

// commitTracer reports Committed whenever the server has confirmed a COMMIT. It looks from below pgx, so it is the same
// for all handlers and they need not know of it. A worker processes one message at a time, and commits only what a
// message has made it do.
type commitTracer struct{ out io.Writer }

// TraceQueryStart does nothing.
func (commitTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd looks at the server's answer: a COMMIT that ended in a rollback answers ROLLBACK.
func (t commitTracer) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if data.Err == nil && data.CommandTag.String() == "COMMIT" {
		Report{Stage: Committed}.write(t.out)
	}
}
