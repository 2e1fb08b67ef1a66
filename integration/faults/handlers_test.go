package faults

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/txidem/txidem-go/txidem"
)

// story is one message on its way through its deliveries, and what its handler remembers of it.
type story struct {
	id        string
	point     atomic.Value
	stumbled  atomic.Bool // the handler has failed, or misbehaved, as it does once for each message
	forgotten atomic.Bool // WrapSeen acked the message and said that it could not remember it
}

func newStory(id string) *story {
	s := &story{id: id}
	s.reach(atClaim)
	return s
}

// reach says at which point the delivery is.
func (s *story) reach(point string) { s.point.Store(point) }

func (s *story) at() string { return s.point.Load().(string) }

// script is a handler of the matrix: what it does for a message, and the effect that is left when it has succeeded.
type script struct {
	name  string
	run   func(ctx context.Context, tx pgx.Tx, s *story) error
	parts []string // the parts of the effect, one row each

	queue queueFunc // in place of run, in the mode Pipeline
	batch batchFunc // in place of run, in the mode WrapBatch
	opts  []txidem.BatchOption
}

func (s script) String() string { return s.name }

// scripts are handlers as they should be. Each of their statements is a point at which the delivery can break.
var scripts = []script{
	{name: "one statement", run: oneStatement, parts: []string{"a"}},
	{name: "several statements", run: severalStatements, parts: []string{"a", "b", "c", "d", "e", "f"}},
	{name: "error first", run: errorFirst, parts: []string{"a"}},
	{name: "refused COMMIT first", run: refusedCommitFirst, parts: []string{"a"}},
}

// misbehaving are handlers that end the transaction behind the library's back, or hide that it is aborted, once for each
// message, and report success. Such a delivery must not be acked unless its effect is there.
var misbehaving = []script{
	{name: "raw ROLLBACK first", run: endsBy("ROLLBACK"), parts: []string{"a"}},
	{name: "ROLLBACK and BEGIN first", run: endsBy("SELECT 1; ROLLBACK; BEGIN"), parts: []string{"a"}},
	{name: "raw COMMIT first", run: endsBy("COMMIT"), parts: []string{"a"}},
	{name: "hidden error first", run: hiddenErrorFirst, parts: []string{"a"}},
}

const insertPart = `INSERT INTO effects (message_id, part) VALUES ($1, $2)`

func insert(ctx context.Context, tx pgx.Tx, s *story, part string) error {
	_, err := tx.Exec(ctx, insertPart, s.id, part)
	return err
}

func oneStatement(ctx context.Context, tx pgx.Tx, s *story) error {
	return insert(ctx, tx, s, "a")
}

// severalStatements uses what a transaction of pgx has: a statement, a savepoint that is kept and one that is not, a
// batch, a COPY and a query.
func severalStatements(ctx context.Context, tx pgx.Tx, s *story) error {
	steps := []func(context.Context, pgx.Tx, *story) error{
		oneStatement, keptSavepoint, undoneSavepoint, batchOfTwo, copyOfTwo, readBack,
	}
	for _, step := range steps {
		if err := step(ctx, tx, s); err != nil {
			return err
		}
	}
	return nil
}

func keptSavepoint(ctx context.Context, tx pgx.Tx, s *story) error {
	return pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error { return insert(ctx, nested, s, "b") })
}

var errUndo = errors.New("undo the savepoint")

func undoneSavepoint(ctx context.Context, tx pgx.Tx, s *story) error {
	err := pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error {
		return errors.Join(insert(ctx, nested, s, "undone"), errUndo)
	})
	if errors.Is(err, errUndo) && !tx.Conn().IsClosed() {
		return nil
	}
	return err
}

func batchOfTwo(ctx context.Context, tx pgx.Tx, s *story) error {
	b := &pgx.Batch{}
	b.Queue(insertPart, s.id, "c")
	b.Queue(insertPart, s.id, "d")
	return tx.SendBatch(ctx, b).Close()
}

func copyOfTwo(ctx context.Context, tx pgx.Tx, s *story) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"message_id", "part"},
		pgx.CopyFromRows([][]any{{s.id, "e"}, {s.id, "f"}}))
	return err
}

var errHalfAnEffect = errors.New("the handler does not see what it wrote")

func readBack(ctx context.Context, tx pgx.Tx, s *story) error {
	var n int
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM effects WHERE message_id = $1`, s.id).Scan(&n); err != nil {
		return err
	}
	if n < 6 {
		return errHalfAnEffect
	}
	return nil
}

var errNotYet = errors.New("the handler refuses the message the first time")

func errorFirst(ctx context.Context, tx pgx.Tx, s *story) error {
	if err := insert(ctx, tx, s, "a"); err != nil {
		return err
	}
	if s.stumbled.CompareAndSwap(false, true) {
		return errNotYet
	}
	return nil
}

// refusedCommitFirst breaks a deferred foreign key, so that COMMIT is what fails, until a delivery has ended with that.
func refusedCommitFirst(ctx context.Context, tx pgx.Tx, s *story) error {
	if s.stumbled.Load() {
		return insert(ctx, tx, s, "a")
	}
	_, err := tx.Exec(ctx, insertOrphan, s.id)
	return err
}

const insertOrphan = `INSERT INTO effects (message_id, part, parent) VALUES ($1, 'orphan', -1)`

// stumbles reports whether a delivery ended with what the scripts that fail first wait for.
func stumbles(err error) bool {
	const notNullViolation, foreignKeyViolation = "23502", "23503"
	var pgErr *pgconn.PgError
	return errors.Is(err, errNotYet) ||
		errors.As(err, &pgErr) && (pgErr.Code == notNullViolation || pgErr.Code == foreignKeyViolation)
}

// endsBy makes a handler that sends sql, which ends the transaction, past the library's eyes.
func endsBy(sql string) func(context.Context, pgx.Tx, *story) error {
	return func(ctx context.Context, tx pgx.Tx, s *story) error {
		if err := insert(ctx, tx, s, "a"); err != nil || s.stumbled.Load() {
			return err
		}
		_, err := tx.Conn().Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
		s.stumbled.Store(err == nil)
		return err
	}
}

// hiddenErrorFirst has a statement fail and does not say so, unless it is the connection that failed.
func hiddenErrorFirst(ctx context.Context, tx pgx.Tx, s *story) error {
	if err := insert(ctx, tx, s, "a"); err != nil || s.stumbled.Load() {
		return err
	}
	_, err := tx.Exec(ctx, `SELECT 1/0`)
	if tx.Conn().IsClosed() {
		return err
	}
	s.stumbled.Store(true)
	return nil
}
