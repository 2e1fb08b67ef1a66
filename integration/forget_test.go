package integration

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// beforeDelete is a tracer that runs a func once, before the first DELETE is sent.
type beforeDelete struct {
	once sync.Once
	run  func()
}

func (b *beforeDelete) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.HasPrefix(data.SQL, "DELETE") {
		b.once.Do(b.run)
	}
	return ctx
}

func (b *beforeDelete) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Forget meets a transaction that removes the same record, another Forget or a sweep, and that has come in between Forget's
// claim and its DELETE: past the bound it is ErrInFlight, and has removed nothing.
func TestForgetMeetsAnotherRemoval(t *testing.T) {
	t.Parallel()
	tracer := &beforeDelete{}
	w := newWorld(t, inFlightWait(20*time.Millisecond), func(c *pgxpool.Config) { c.ConnConfig.Tracer = tracer })
	w.requireOutcome(txidem.Processed, "m", w.ok)
	removal, err := w.db.Pool(t).Begin(t.Context())
	require.NoError(t, err)
	tracer.run = func() {
		_, err = removal.Exec(t.Context(), `DELETE FROM txidem_messages WHERE message_id = 'm'`)
	}

	forgetErr := w.guard.Forget(t.Context(), "m")
	require.NoError(t, err)
	require.NoError(t, removal.Rollback(t.Context()))
	require.ErrorIs(t, forgetErr, txidem.ErrInFlight)
	require.ErrorContains(t, forgetErr, "removed")

	w.requireOutcome(txidem.Duplicate, "m", w.ok)
	require.NoError(t, w.guard.Forget(t.Context(), "m"))
	w.requireOutcome(txidem.Processed, "m", w.ok)
	w.requireCalls(2)
	w.db.Invariant(t)
}
