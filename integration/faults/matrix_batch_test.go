package faults

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/txidem"
)

// batchFunc is a script for a batch. Each message is a part of the effect.
type batchFunc func(ctx context.Context, tx pgx.Tx, s *story, parts []string) error

// batches are the scripts of the mode WrapBatch.
var batches = []script{
	{name: "one statement", batch: insertParts, parts: batchParts},
	{name: "error first", batch: poisonFirst, parts: batchParts},
	{name: "error first, in savepoints", batch: poisonFirst, parts: batchParts, opts: []txidem.BatchOption{txidem.WithSavepoints()}},
	{name: "refused COMMIT first", batch: orphanFirst, parts: batchParts},
}

var batchParts = []string{"a", "b", "c"}

// wrapBatch delivers a batch: the message of the story, which is part a, two more, and a copy of the first. The broker acks
// all of them or none.
func wrapBatch(ctx context.Context, l *line, s *story) error {
	handler := func(ctx context.Context, tx pgx.Tx, parts []string) error {
		s.reach(atHandler)
		defer s.reach(atCommit)
		return l.script.batch(ctx, tx, s, parts)
	}
	id := func(part string) string {
		if part == "a" {
			return s.id
		}
		return s.id + part
	}
	var errs []error
	for _, r := range txidem.WrapBatch(l.guard, id, handler, l.script.opts...)(ctx, slices.Concat(batchParts, []string{"a"})) {
		errs = append(errs, ackable(r.Outcome, r.Err))
	}
	return errors.Join(errs...)
}

func insertParts(ctx context.Context, tx pgx.Tx, s *story, parts []string) error {
	_, err := tx.Exec(ctx, `INSERT INTO effects (message_id, part) SELECT $1, unnest($2::text[])`, s.id, parts)
	return err
}

// poisonFirst refuses the message of part b, until a delivery has ended with that.
func poisonFirst(ctx context.Context, tx pgx.Tx, s *story, parts []string) error {
	if err := insertParts(ctx, tx, s, parts); err != nil {
		return err
	}
	if slices.Contains(parts, "b") && !s.stumbled.Load() {
		return errNotYet
	}
	return nil
}

// orphanFirst breaks a deferred foreign key for the message of part b, until a delivery has ended with that.
func orphanFirst(ctx context.Context, tx pgx.Tx, s *story, parts []string) error {
	if slices.Contains(parts, "b") && !s.stumbled.Load() {
		_, err := tx.Exec(ctx, insertOrphan, s.id)
		return err
	}
	return insertParts(ctx, tx, s, parts)
}
