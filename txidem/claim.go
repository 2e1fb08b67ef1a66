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

// begin sends BEGIN and the claim in one round trip. It reports whether the claim is ours. Without an error t is open then,
// and the caller must end it; after one it has ended.
//
// The race this decides: two deliveries of one message insert the same key. The unique index lets one INSERT through and
// makes the other wait until the first transaction ends. After its COMMIT the other inserts no row, after its ROLLBACK,
// or the death of its connection, the other inserts the row and runs the handler.
func (g *Guard) begin(ctx context.Context, t *transaction, beginning *pgx.Batch, id string) (bool, error) {
	limit := limitClaim(t.conn, g.claimTime())
	rows, err := t.beginWith(ctx, beginning, g.sql.Claim, id, g.consumer, g.wait, g.idle)
	expired := limit.lift()
	if err != nil {
		t.rollback(ctx)
		return false, g.claimError(ctx, expired, id, err)
	}
	return rows == 1, nil
}

// beginMany is begin for several messages of a batch, whose ids are in ascending order, waiting at most wait for each copy
// in flight. It returns the ids that are ours, in that order too.
func (g *Guard) beginMany(ctx context.Context, t *transaction, ids []string, wait any) ([]string, error) {
	t.first.begin(&g.beginning)
	t.first.queue(g.sql.ClaimMany, ids, g.consumer, wait, g.idle)
	limit := limitClaim(t.conn, g.claimTime()+time.Duration(len(ids))*claimTimeOfOne)
	br := t.send(ctx)
	_, beginErr := br.Exec()
	var claimed []string
	claimErr := br.QueryRow().Scan(&claimed, nil)
	err := cmp.Or(beginErr, claimErr, br.Close())
	expired := limit.lift()
	if err != nil {
		t.rollback(ctx)
		return nil, g.claimError(ctx, expired, "", err)
	}
	slices.Sort(claimed)
	return claimed, nil
}

// beginUnguarded begins the transaction of messages without an id.
func (g *Guard) beginUnguarded(ctx context.Context, t *transaction) error {
	if _, err := t.beginWith(ctx, &g.beginning, g.sql.Mark, g.idle); err != nil {
		t.rollback(ctx)
		return withContext(ctx, "BEGIN", err)
	}
	return nil
}

// beginWith sends BEGIN and the first statement of the transaction in one round trip, and returns the number of rows that
// this returned. After an error the transaction is to be rolled back.
func (t *transaction) beginWith(ctx context.Context, beginning *pgx.Batch, first string, args ...any) (int64, error) {
	t.first.begin(beginning)
	t.first.queue(first, args...)
	br := t.send(ctx)
	_, beginErr := br.Exec()
	tag, firstErr := br.Exec()
	return tag.RowsAffected(), cmp.Or(beginErr, firstErr, br.Close())
}

// send sends the first batch of the transaction.
func (t *transaction) send(ctx context.Context) pgx.BatchResults {
	br := t.conn.SendBatch(ctx, &t.first.batch)
	t.tx = br.Tx()
	return br
}

// beginningWith makes the batch that begins transactions with these options, to be copied for each.
func beginningWith(opts pgx.TxOptions) pgx.Batch {
	opts.CommitQuery = sqlgen.Commit
	var b pgx.Batch
	b.BeginTx(opts)
	return b
}

// firstBatch is the batch that begins a transaction and claims, with room for what is queued in it.
type firstBatch struct {
	batch   pgx.Batch
	queries [2]pgx.QueuedQuery
	args    [4]any
	room    [6]*pgx.QueuedQuery
}

// begin makes the batch a copy of beginning, but for the query: pgx keeps in one what it has learned about it on the
// connection it was sent on.
func (f *firstBatch) begin(beginning *pgx.Batch) {
	f.batch = *beginning
	f.queries[0] = pgx.QueuedQuery{SQL: beginning.QueuedQueries[0].SQL}
	f.batch.QueuedQueries = append(f.room[:0], &f.queries[0])
}

// queue queues the second query, or the first one of a batch without BEGIN.
func (f *firstBatch) queue(sql string, args ...any) {
	if f.batch.QueuedQueries == nil {
		f.batch.QueuedQueries = f.room[:0]
	}
	f.queries[1] = pgx.QueuedQuery{SQL: sql, Arguments: append(f.args[:0], args...)}
	f.batch.QueuedQueries = append(f.batch.QueuedQueries, &f.queries[1])
}

// roomyBatch is a batch with room for a few statements.
type roomyBatch struct {
	batch pgx.Batch
	room  [6]*pgx.QueuedQuery
}

// empty returns the batch. It is called once.
func (r *roomyBatch) empty() *pgx.Batch {
	r.batch.QueuedQueries = r.room[:0]
	return &r.batch
}

// newBatch makes a batch that has room for a few statements, in one allocation.
func newBatch() *pgx.Batch { return new(roomyBatch).empty() }

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
