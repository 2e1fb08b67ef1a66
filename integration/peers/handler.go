package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// exec runs one statement in whatever a contender writes through.
type exec func(ctx context.Context, sql string, args ...any) error

// handler is the business of all contenders: one INSERT for a message. It is safe for concurrent use.
type handler struct {
	pause    atomic.Int64 // nanoseconds that it takes after the INSERT
	failures atomic.Int64 // how many of the next calls fail after the INSERT
}

const insertEffect = `INSERT INTO effects (message_id, cents) VALUES ($1::text, $2::bigint)`

// cents is what each effect carries.
const cents int64 = 500

var errAsked = errors.New("the handler was asked to fail")

func (h *handler) handle(ctx context.Context, id string, write exec) error {
	if err := write(ctx, insertEffect, id, cents); err != nil {
		return err
	}
	time.Sleep(time.Duration(h.pause.Load()))
	if h.failures.Add(-1) >= 0 {
		return errAsked
	}
	return nil
}
