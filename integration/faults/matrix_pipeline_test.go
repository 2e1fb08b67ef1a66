package faults

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/txidem"
)

// queueFunc is a script for a pipeline: it queues the statements of a message.
type queueFunc func(b *pgx.Batch, s *story) error

// forms are a script for each form that a pipeline can take.
var forms = []script{
	{name: "one statement", queue: queueOne, parts: []string{"a"}},
	{name: "statements in a block", queue: queueBlock, parts: []string{"a", "b"}},
	{name: "callback", queue: queueCallback, parts: []string{"a", "b"}},
}

// queues are the scripts of the mode Pipeline.
var queues = append(slices.Clone(forms), []script{
	{name: "error first", queue: queueErrorFirst, parts: []string{"a", "b"}},
	{name: "refused COMMIT first", queue: queueOrphanFirst, parts: []string{"a"}},
}...)

func pipeline(ctx context.Context, l *line, s *story) error {
	return txidem.WrapPipeline(l.guard, idOf, func(_ context.Context, b *pgx.Batch, s *story) error {
		defer s.reach(atHandler) // everything is on the wire from here on
		return l.script.queue(b, s)
	})(ctx, s)
}

func queueOne(b *pgx.Batch, s *story) error {
	b.Queue(insertPart, s.id, "a")
	return nil
}

// queueBlock needs a transaction block, for its savepoint.
func queueBlock(b *pgx.Batch, s *story) error {
	b.Queue(insertPart, s.id, "a")
	b.Queue("SAVEPOINT s")
	b.Queue(insertPart, s.id, "undone")
	b.Queue("ROLLBACK TO SAVEPOINT s")
	b.Queue(insertPart, s.id, "b")
	return nil
}

func queueCallback(b *pgx.Batch, s *story) error {
	b.Queue(insertPart, s.id, "a")
	b.Queue(insertPart+" RETURNING part", s.id, "b").QueryRow(func(row pgx.Row) error { return row.Scan(new(string)) })
	return nil
}

// queueErrorFirst has its second statement fail, until a delivery has ended with that.
func queueErrorFirst(b *pgx.Batch, s *story) error {
	b.Queue(insertPart, s.id, "a")
	if !s.stumbled.Load() {
		b.Queue("INSERT INTO effects (message_id, part) VALUES ($1, NULL)", s.id)
	}
	b.Queue(insertPart, s.id, "b")
	return nil
}

// queueOrphanFirst breaks a deferred foreign key, so that the commit is what fails, until a delivery has ended with that.
func queueOrphanFirst(b *pgx.Batch, s *story) error {
	if !s.stumbled.Load() {
		b.Queue(insertOrphan, s.id)
		return nil
	}
	return queueOne(b, s)
}
