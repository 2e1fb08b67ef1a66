package txidem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/internal/handlertx"
	"github.com/txidem/txidem-go/internal/pgerr"
	"github.com/txidem/txidem-go/internal/sqlgen"
)

// endLimit bounds a rollback that goes on after the caller's context has ended.
const endLimit = 5 * time.Second

// resolveLimit is added to InFlightWait for finding out what became of a COMMIT: the time for a connection to be had.
const resolveLimit = 5 * time.Second

// commitUnknownError is what commit returns when the server did not say what it did.
type commitUnknownError struct {
	cause error

	// doubtful: the handler may have ended the transaction unseen. Then a record does not show that this COMMIT, and all of
	// the handler's work with it, took place.
	doubtful bool
}

func (e *commitUnknownError) Error() string { return fmt.Sprintf("%v: %v", ErrCommitUnknown, e.cause) }

// Is makes errors.Is(err, ErrCommitUnknown) true.
func (e *commitUnknownError) Is(target error) bool { return target == ErrCommitUnknown }

func (e *commitUnknownError) Unwrap() error { return e.cause }

// errHiddenFailure: nothing more can be done in the transaction, and nobody said so.
var errHiddenFailure = fmt.Errorf("%w: a statement failed and the handler returned nil: "+
	"return the error, or use a savepoint (tx.Begin)", ErrTxAborted)

// errConnLost: the connection broke before COMMIT was sent, so nothing is committed.
var errConnLost = errors.New("txidem: the connection was lost while the handler ran: nothing is stored")

// transaction is the transaction of one attempt. It ends once, by commit or by rollback, or, where a COMMIT or ROLLBACK
// travels with other statements, with those: a pipeline's, and the look at a record. It is used by one goroutine.
type transaction struct {
	conn  *pgxpool.Conn
	first firstBatch // what it begins with
	tx    pgx.Tx     // nil until it was begun
	over  bool       // its end is decided, and sent unless the connection broke

	// doubtful is set when the handler may have ended the transaction unseen and begun another: then COMMIT asks for it.
	doubtful bool
}

// commit ends the transaction. Its error says that nothing is stored, unless it is a *commitUnknownError.
func (t *transaction) commit(ctx context.Context) error {
	if err := t.committable(ctx); err != nil {
		t.rollback(ctx)
		return err
	}
	t.over = true
	return t.judge(ctx, t.end(ctx))
}

// end sends COMMIT.
func (t *transaction) end(ctx context.Context) error {
	if t.doubtful {
		_, err := t.conn.Exec(ctx, sqlgen.GuardedCommit)
		return err
	}
	return t.tx.Commit(ctx)
}

// judge says what the answer to COMMIT means. Its error says that nothing is stored, unless it is a *commitUnknownError.
// Nothing less than an idle connection is a commit.
func (t *transaction) judge(ctx context.Context, err error) error {
	status := t.conn.Conn().PgConn().TxStatus()
	switch {
	case err == nil && status == handlertx.StatusIdle:
		return nil
	case err == nil:
		return t.unknown(fmt.Errorf("txidem: the transaction status is %q after COMMIT", status))
	case pgerr.HasText(err, sqlgen.GuardText):
		return fmt.Errorf("%w: it was ended by a statement of the handler, and what is open now is another one", ErrTxControl)
	case pgerr.ProvesRollback(err):
		return withContext(ctx, "COMMIT was refused and nothing is stored", err)
	default:
		return t.unknown(err)
	}
}

func (t *transaction) unknown(cause error) error {
	return &commitUnknownError{cause: cause, doubtful: t.doubtful}
}

// committable looks at what the client knows, without a round trip. Where COMMIT would not commit the handler's work, it
// is not sent, so that what happened is certain.
func (t *transaction) committable(ctx context.Context) error {
	conn := t.conn.Conn().PgConn()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("txidem: not committed, the context ended while the handler ran: %w", ctx.Err())
	case conn.IsClosed():
		return errConnLost
	case conn.IsBusy():
		return handlertx.ErrLeftOpen
	case conn.TxStatus() == handlertx.StatusAborted:
		return errHiddenFailure
	case conn.TxStatus() == handlertx.StatusIdle:
		return handlertx.ErrEnded
	default:
		return nil
	}
}

// rollback ends the transaction if it is still open. It does not heed the end of the caller's context, so that the
// connection can go back to the pool; when it fails the connection is closed, and the server rolls back by itself.
func (t *transaction) rollback(ctx context.Context) {
	if t.over || t.tx == nil {
		return
	}
	t.over = true
	conn := t.conn.Conn().PgConn()
	if conn.IsClosed() || conn.TxStatus() == handlertx.StatusIdle && !conn.IsBusy() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	_ = t.tx.Rollback(ctx) // on failure pgx closes the connection
}
