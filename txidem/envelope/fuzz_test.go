package envelope_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem/envelope"
)

func FuzzDecode(f *testing.F) {
	f.Add([]byte(valid))
	f.Add([]byte(deadLettered))
	f.Add([]byte(`{"urn":"u","meta":{"schema_version":1,"id":"\ud83d\ude00\u0000\/\\"},"data":{"a":[1,{"b":"\n"}]},"x":{}}`))
	f.Add([]byte(`{"job":"u","meta":{"schema_version":1,"ID":"a"}}`))
	f.Add([]byte(`{"job":"u","a":{"<":1e9},"meta":{"schema_version":1,"\u0000":"\u2028"},"dead_letter":{"x":[{}, ""]}}`))
	f.Add([]byte(`{"job":"u","meta":{"\u0069d":"\ud800","schema_version":1},"attempts":1e9}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := envelope.Decode(body)
		if err != nil {
			require.Len(t, kinds(err), 1)
			require.Zero(t, e)
			return
		}
		require.True(t, json.Valid(body))
		require.Equal(t, unquote(rawID(t, body)), e.ID(), "the id is what the body says")
		checkStable(t, body, e)
	})
}

// checkStable requires that Encode and Decode lose nothing between them. e is the body, decoded.
func checkStable(t *testing.T, body []byte, e envelope.Envelope) {
	t.Helper()
	first, err := envelope.Encode(e)
	require.NoError(t, err)
	requireUnknownKept(t, body, first)
	again, err := envelope.Decode(first)
	require.NoError(t, err)
	second, err := envelope.Encode(again)
	require.NoError(t, err)
	require.Equal(t, string(first), string(second))

	if e.Data == nil {
		require.Equal(t, "{}", string(again.Data))
	} else {
		require.Equal(t, compact(t, e.Data), string(again.Data))
	}
	e, again = known(e), known(again)
	e.Data, again.Data = nil, nil
	require.Equal(t, e, again)
}

// known returns a copy of e without its unknown members.
func known(e envelope.Envelope) envelope.Envelope {
	m := e.Meta
	e.Meta = envelope.Meta{ID: m.ID, Queue: m.Queue, Lang: m.Lang, SchemaVersion: m.SchemaVersion, CreatedAt: m.CreatedAt}
	if d := e.DeadLetter; d != nil {
		e.DeadLetter = &envelope.DeadLetter{
			Reason: d.Reason, Error: d.Error, Exception: d.Exception, FailedAt: d.FailedAt,
			OriginalQueue: d.OriginalQueue, Attempts: d.Attempts, Lang: d.Lang,
		}
	}
	return envelope.Envelope{
		Job: e.Job, TraceID: e.TraceID, Data: e.Data, Meta: e.Meta, Attempts: e.Attempts, DeadLetter: e.DeadLetter,
	}
}

func compact(t *testing.T, data []byte) string {
	t.Helper()
	var buf bytes.Buffer
	require.NoError(t, json.Compact(&buf, data))
	return buf.String()
}

// FuzzTwoIDs builds two bodies that differ in the text of their id only.
func FuzzTwoIDs(f *testing.F) {
	f.Add(`a`, `\u0061`)
	f.Add(`\ud800`, `\udc00`)
	f.Add("\xff", `\ufffd`)
	f.Add(`a","ID":"b`, `b`)
	f.Add(`\ud83d\ude00`, "\U0001F600")
	f.Fuzz(func(t *testing.T, a, b string) {
		bodyA, bodyB := withID(a), withID(b)
		first, errA := envelope.Decode(bodyA)
		second, errB := envelope.Decode(bodyB)
		if errA != nil || errB != nil {
			return
		}
		same := unquote(rawID(t, bodyA)) == unquote(rawID(t, bodyB))
		require.Equal(t, same, first.ID() == second.ID(), "%q and %q", a, b)
	})
}

func withID(raw string) []byte {
	return []byte(`{"job":"u","meta":{"schema_version":1,"id":"` + raw + `"}}`)
}

// rawID returns the id as it stands in an accepted body, in its quotes; `""` where there is none.
func rawID(t *testing.T, body []byte) string {
	t.Helper()
	var top, meta map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(body, &top))
	require.NoError(t, json.Unmarshal(top["meta"], &meta))
	if id, ok := meta["id"]; ok && string(id) != "null" {
		return string(id)
	}
	return `""`
}

// unquote reads a JSON string without losing anything: bytes that are not UTF-8 stay, and half of a surrogate pair becomes
// the three bytes that UTF-8 would use for it, were it allowed.
func unquote(quoted string) string {
	var out []byte
	text := quoted[1 : len(quoted)-1]
	for text != "" {
		switch {
		case text[0] != '\\':
			out, text = append(out, text[0]), text[1:]
		case text[1] != 'u':
			out, text = append(out, shortEscapes[text[1]]), text[2:]
		default:
			unit := hex4(text[2:])
			text = text[6:]
			if unit>>10 == 0b110110 && strings.HasPrefix(text, `\u`) && hex4(text[2:])>>10 == 0b110111 {
				unit = 0x10000 + (unit&0x3ff)<<10 + hex4(text[2:])&0x3ff
				text = text[6:]
			}
			out = appendUnit(out, unit)
		}
	}
	return string(out)
}

var shortEscapes = map[byte]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

func hex4(text string) uint64 {
	unit, _ := strconv.ParseUint(text[:4], 16, 16)
	return unit
}

func appendUnit(out []byte, unit uint64) []byte {
	if unit>>11 == 0b11011 {
		return append(out, 0xe0|byte(unit>>12), 0x80|byte(unit>>6&0x3f), 0x80|byte(unit&0x3f))
	}
	return utf8.AppendRune(out, rune(unit))
}

// The fuzz tests lean on unquote, so it has a test itself.
func TestUnquote(t *testing.T) {
	t.Parallel()
	for quoted, want := range map[string]string{
		`""`:                   "",
		`"a\"\\\/\b\f\n\r\t"`:  "a\"\\/\b\f\n\r\t",
		`"\u0061\u00e9\u20AC"`: "aé€",
		`"\ud83d\ude00x"`:      "\U0001F600x",
		`"\ud800"`:             "\xed\xa0\x80",
		`"\udc00\ud800"`:       "\xed\xb0\x80\xed\xa0\x80",
		`"\ud800\n"`:           "\xed\xa0\x80\n",
		`"\ud800\u0061"`:       "\xed\xa0\x80a",
		"\"\xff\"":             "\xff",
	} {
		assert.Equal(t, want, unquote(quoted), "%s", quoted)
	}
}
