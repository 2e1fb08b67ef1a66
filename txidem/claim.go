package txidem

import (
	"cmp"
	"context"
	"slices"
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
	limit := limitClaim(conn, g.claimTime())
	t, rows, err := beginWith(ctx, conn, opts, g.sql.Claim, id, g.consumer, g.wait, g.idle)
	expired := limit.lift()
	if err != nil {
		t.rollback(ctx)
		return nil, false, g.claimError(ctx, expired, id, err)
	}
	return t, rows == 1, nil
}

// beginMany is begin for several messages of a batch, whose ids are in ascending order, waiting at most wait for each copy in
// flight. It returns the ids that are ours, in that order too.
func (g *Guard) beginMany(ctx context.Context, conn *pgxpool.Conn, ids []string, wait any) (*transaction, []string, error) {
	b := newBatch()
	beginIn(b, g.cfg.TxOptions)
	b.Queue(g.sql.ClaimMany, ids, g.consumer, wait, g.idle)
	limit := limitClaim(conn, g.claimTime()+time.Duration(len(ids))*claimTimeOfOne)
	br := conn.SendBatch(ctx, b)
	t := &transaction{conn: conn, tx: br.Tx()}
	_, beginErr := br.Exec()
	var claimed []string
	var restored string
	claimErr := br.QueryRow().Scan(&claimed, &restored)
	err := cmp.Or(beginErr, claimErr, br.Close())
	expired := limit.lift()
	if err != nil {
		t.rollback(ctx)
		return t, nil, g.claimError(ctx, expired, "", err)
	}
	slices.Sort(claimed)
	return t, claimed, nil
}

// beginUnguarded begins the transaction of messages without an id.
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
func beginWith(
	ctx context.Context, conn *pgxpool.Conn, opts pgx.TxOptions, first string, args ...any,
) (*transaction, int64, error) {
	b := newBatch()
	beginIn(b, opts)
	b.Queue(first, args...)
	br := conn.SendBatch(ctx, b)
	_, beginErr := br.Exec()
	tag, firstErr := br.Exec()
	return &transaction{conn: conn, tx: br.Tx()}, tag.RowsAffected(), cmp.Or(beginErr, firstErr, br.Close())
}

// beginIn queues BEGIN.
func beginIn(b *pgx.Batch, opts pgx.TxOptions) {
	opts.CommitQuery = sqlgen.Commit
	b.BeginTx(opts)
}

// newBatch makes a batch that has room for a few statements, in one allocation.
func newBatch() *pgx.Batch {
	b := &struct {
		pgx.Batch
		room [6]*pgx.QueuedQuery
	}{}
	b.QueuedQueries = b.room[:0]
	return &b.Batch
}

// claimLimit is the client's own bound of a claim, on the socket. A context with a deadline would do the same.
type claimLimit struct {
	conn *pgxpool.Conn
	end  time.Time
}

func limitClaim(conn *pgxpool.Conn, d time.Duration) claimLimit {
	l := claimLimit{conn: conn, end: time.Now().Add(d)}
	_ = conn.Conn().PgConn().Conn().SetDeadline(l.end) // fails on a closed socket, which the claim will meet
	return l
}

// lift ends the bound, and reports whether it has closed the connection.
func (l claimLimit) lift() (expired bool) {
	c := l.conn.Conn().PgConn()
	_ = c.Conn().SetDeadline(time.Time{})
	return c.IsClosed() && !time.Now().Before(l.end)
}

// claimTimeOfOne is what each message of a batch adds to the time: several times what a claim among many takes.
const claimTimeOfOne = 100 * time.Microsecond

// claimTime is how long a claim may take, as seen by the client.
func (g *Guard) claimTime() time.Duration { return g.cfg.InFlightWait + claimGrace }
