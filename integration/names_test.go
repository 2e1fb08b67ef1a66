package integration

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
	"github.com/txidem/txidem-go/txidem/envelope"
)

// execModes are all the ways in which pgx sends a statement.
var execModes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}

const (
	composed   = "\u00e9"  // é as one code point
	decomposed = "e\u0301" // and as two
	mostBytes  = 1024      // the limit of an id
)

// distinctIDs are as many messages as there are strings, whatever they look like.
func distinctIDs() []string {
	return []string{
		"ABC", "abc", "abc ", " abc", "abc\u00a0", "abc\n", "abc\r\n", "abc\t", composed, decomposed, "\u00c9",
		"{}", `{"a","b"}`, "{a,b}", "a,b", `"`, `'`, `''`, `\`, `\'`, `\x41`, "$1", "$2::text", "%s", "?", ":id", "--", "/*",
		"'; DROP TABLE biz; --", "NULL", "null", "0", "00", "1", "1.0", "true", "\x01", "\ufeff", "\u200d", "🚀", "👩\u200d🚀",
		strings.Repeat("a", mostBytes), strings.Repeat(composed, mostBytes/2), random(mostBytes),
	}
}

// random returns a string of n bytes that cannot be compressed much. It is the same in every run.
func random(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	return base64.RawStdEncoding.EncodeToString(raw)[:n]
}

// Ids are kept byte for byte, in every exec mode and by every verb.
func TestIDsAreVerbatim(t *testing.T) {
	t.Parallel()
	for _, mode := range execModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, execMode(mode))
			ids := distinctIDs()
			for _, id := range ids {
				w.requireOutcome(txidem.Processed, id, w.ok)
			}
			for _, id := range ids {
				w.requireOutcome(txidem.Duplicate, id, w.ok)
				w.requireSeen(true, id)
			}
			require.ElementsMatch(t, ids, w.recordedIDs())
			w.requireCalls(int64(len(ids)))
			w.requireEffects(len(ids))
			w.forgetOneByOne(ids)
		})
	}
}

func (w *world) recordedIDs() []string {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), `SELECT message_id FROM txidem_messages`)
	require.NoError(w.t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(w.t, err)
	return ids
}

// forgetOneByOne asserts that Forget takes one record, and Remember and ClaimTx put one back.
func (w *world) forgetOneByOne(ids []string) {
	w.t.Helper()
	for i, id := range ids {
		require.NoError(w.t, w.guard.Forget(w.t.Context(), id))
		require.Equal(w.t, len(ids)-1, w.count(`SELECT count(*) FROM txidem_messages`), "%q", id)
		w.requireSeen(false, id)
		if i%2 == 0 {
			require.NoError(w.t, w.guard.Remember(w.t.Context(), id))
			continue
		}
		require.NoError(w.t, pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
			outcome, err := w.guard.ClaimTx(w.t.Context(), tx, id)
			require.Equal(w.t, txidem.Claimed, outcome, "%q", id)
			return err
		}))
	}
	require.ElementsMatch(w.t, ids, w.recordedIDs())
	w.db.Invariant(w.t)
}

// An id that cannot be stored is refused before anything is sent, by every verb. The limit is in bytes, however well the
// id compresses.
func TestIDsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var sent statements
	g := newGuard(t, w.db.Pool(t, sent.install), &txidem.Config{Consumer: consumer})
	for _, id := range []string{
		strings.Repeat("a", mostBytes+1), random(mostBytes + 1), strings.Repeat(composed, mostBytes/2) + "a",
		"a\x00b", "\xff", "\xed\xa0\x80", "\xc3",
	} {
		_, processErr := g.Process(t.Context(), id, w.ok)
		_, claimErr := g.ClaimTx(t.Context(), untouchedTx{}, id)
		_, seenErr := g.Seen(t.Context(), id)
		for verb, err := range map[string]error{
			"Process": processErr, "ClaimTx": claimErr, "Seen": seenErr,
			"Remember": g.Remember(t.Context(), id), "Forget": g.Forget(t.Context(), id),
		} {
			var idErr *txidem.IDError
			require.ErrorAs(t, err, &idErr, "%s %q", verb, id)
			require.Equal(t, id, idErr.ID)
			require.ErrorIs(t, err, txidem.ErrInvalidID)
			require.False(t, txidem.Retryable(err))
		}
	}
	require.Empty(t, sent.list())
	w.requireCalls(0)
	w.requireEffects(0)
}

// untouchedTx panics when anything is done with it.
type untouchedTx struct{ pgx.Tx }

// A consumer's name counts byte for byte, and no two pairs of id and consumer are taken for one.
func TestConsumersAreVerbatim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pairs := []struct{ id, consumer string }{
		{"a:b", "c"},
		{"a", "b:c"},
		{"a", "b"},
		{"b", "a"},
		{"ab", "c"},
		{"a", "bc"},
		{"a,b", "c"},
		{"a", "b,c"},
		{"a", "B"},
		{"a", "b "},
		{"a", composed},
		{"a", decomposed},
		{"a", `"b'\`},
		{"a", "$1"},
		{"a", "{b}"},
		{"a", "b\n"},
		{"a", strings.Repeat("b", 255)},
		{"a", random(255)},
	}
	for _, want := range []txidem.Outcome{txidem.Processed, txidem.Duplicate} {
		for _, p := range pairs {
			g := newGuard(t, w.pool, &txidem.Config{Consumer: p.consumer})
			outcome, err := g.Process(t.Context(), p.id, w.ok)
			require.NoError(t, err)
			require.Equal(t, want, outcome, "%q for %q", p.id, p.consumer)
			require.Equal(t, 1, w.count(`SELECT count(*) FROM txidem_messages WHERE message_id = $1 AND consumer = $2`,
				p.id, p.consumer))
		}
	}
	w.requireEffects(len(pairs))

	for _, name := range []string{"", strings.Repeat("b", 256), strings.Repeat(composed, 128), "a\x00", "\xff"} {
		_, err := txidem.New(w.pool, &txidem.Config{Consumer: name})
		var configErr *txidem.ConfigError
		require.ErrorAs(t, err, &configErr, "%q", name)
		require.Equal(t, "Consumer", configErr.Field)
	}
}

// The id of the message is the key, and the id of the trace it belongs to is not.
func TestTraceIDIsNotTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	handle := txidem.Wrap(w.guard, envelope.Envelope.ID,
		func(ctx context.Context, tx pgx.Tx, _ envelope.Envelope) error { return w.ok(ctx, tx) })
	for _, m := range []struct{ traceID, id string }{{"t", "1"}, {"t", "2"}, {"t", "3"}, {"u", "1"}, {"t", "2"}} {
		e, err := envelope.Decode([]byte(fmt.Sprintf(
			`{"job":"urn:x:y","trace_id":%q,"data":{},"meta":{"id":%q,"schema_version":1},"attempts":0}`, m.traceID, m.id)))
		require.NoError(t, err)
		require.NoError(t, handle(t.Context(), e))
	}
	require.ElementsMatch(t, []string{"1", "2", "3"}, w.recordedIDs())
	w.requireCalls(3)
	w.requireEffects(3)
}
