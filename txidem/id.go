package txidem

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"
)

// held is the context of a handler. It says which messages are claimed by the delivery that called it, so that a Guard that
// is used inside knows that waiting for one of them would be waiting for itself.
type held struct {
	context.Context //nolint:containedctx // it is one
	g               *Guard
	id              string
	ids             []string    // of a batch, in ascending order
	ended           atomic.Bool // the handler has returned
}

// heldKey is the key by which a held finds itself.
type heldKey struct{}

// Value implements context.Context.
func (h *held) Value(key any) any {
	if key == (heldKey{}) {
		return h
	}
	return h.Context.Value(key)
}

// heldIn returns the innermost handler that a context comes from, or nil.
func heldIn(ctx context.Context) *held {
	h, _ := ctx.Value(heldKey{}).(*held)
	return h
}

// has reports whether the delivery has claimed a message of this id.
func (h *held) has(id string) bool {
	if h.ended.Load() {
		return false
	}
	_, found := slices.BinarySearch(h.ids, id)
	return found || id != "" && id == h.id
}

// notHeld returns ErrAlreadyClaimed when ctx is that of a handler whose delivery has claimed the message itself.
func (g *Guard) notHeld(ctx context.Context, id string) error {
	for h := heldIn(ctx); h != nil; h = heldIn(h.Context) {
		if h.has(id) && h.g.sameRecords(g) {
			return g.keyed(fmt.Errorf("%w: by the handler that asks for it", ErrAlreadyClaimed), id)
		}
	}
	return nil
}

// admit reports whether a message of this id is guarded, or says why it cannot be delivered.
func (g *Guard) admit(ctx context.Context, id string) (guarded bool, err error) {
	guarded, err = checkID(id, g.cfg.RequireID)
	if err != nil || !guarded {
		return false, err
	}
	return true, g.notHeld(ctx, id)
}

// sameRecords reports whether two Guards have their records in common.
func (g *Guard) sameRecords(o *Guard) bool {
	return g.cfg.Consumer == o.cfg.Consumer && g.cfg.Table == o.cfg.Table && g.cfg.Schema == o.cfg.Schema && g.sameDB(o)
}

// sameDB reports whether two Guards are of one database: of one pool, or of pools that connect to the same place.
func (g *Guard) sameDB(o *Guard) bool {
	if g == o || g.sqlDB != nil && g.sqlDB == o.sqlDB {
		return true
	}
	if g.db == nil || o.db == nil {
		return false
	}
	one, isPool := g.db.(*pgxpool.Pool)
	other, areBoth := o.db.(*pgxpool.Pool)
	if !isPool || !areBoth {
		return reflect.TypeOf(g.db).Comparable() && g.db == o.db
	}
	a, b := one.Config().ConnConfig, other.Config().ConnConfig
	return one == other || a.Host == b.Host && a.Port == b.Port && a.Database == b.Database
}

// whileHeld adds to a failure to get a connection that the handler which asks for one has one of the same pool.
func (g *Guard) whileHeld(ctx context.Context, err error) error {
	for h := heldIn(ctx); h != nil; h = heldIn(h.Context) {
		if !h.ended.Load() && h.g.sameDB(g) {
			return fmt.Errorf("%w: the handler that this was called in has a connection of the pool: "+
				"use its tx (ClaimTx), or a larger pool", err)
		}
	}
	return err
}

// The limits of the table's key columns, in bytes. With them the largest key is far below what an index entry can hold.
const (
	maxIDBytes       = 1024
	maxConsumerBytes = 255
)

// keyProblem says why PostgreSQL could not store s verbatim as a key column, or returns "".
func keyProblem(s string, limit int) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > limit:
		return fmt.Sprintf("has %d bytes: at most %d are allowed", len(s), limit)
	case strings.IndexByte(s, 0) >= 0:
		return "contains a NUL byte, which PostgreSQL text cannot hold"
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	default:
		return ""
	}
}

// checkID reports whether a delivery with this id is guarded. An empty id is not, unless ids are required. An id that
// cannot be stored is an *IDError.
func checkID(id string, required bool) (guarded bool, err error) {
	if id == "" && !required {
		return false, nil
	}
	if problem := keyProblem(id, maxIDBytes); problem != "" {
		return false, &IDError{ID: id, Problem: problem}
	}
	return true, nil
}

// maxShown is how much of an id is shown, in bytes.
const maxShown = 64

// cut cuts an id to a length that fits a log line.
func cut(id string) string {
	if len(id) <= maxShown {
		return id
	}
	return strings.ToValidUTF8(id[:maxShown], "") + "…"
}

// shown is an id in an error text: cut, and quoted.
func shown(id string) string { return strconv.Quote(cut(id)) }
