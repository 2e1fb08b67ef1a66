package envelope_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem/envelope"
)

// What a newer producer adds to an envelope comes back when it is encoded again: behind the members that are known, in the
// order of the body, every value as it was but for the white space between its tokens.
func TestUnknownMembersAreKept(t *testing.T) {
	t.Parallel()
	body := `{"zeta": {"b" : 1.50, "b": 1e400,` + "\n" + ` "<&>": "\u003c\/ ` + "\u2028" + `"}, "job":"u", "id":"mine",
		"meta": {"tenant":null, "id":"a", "\u0061\"b":[ ], "schema_version":1, "":0},
		"alpha": 123456789012345678901234567890, "urn":"u",
		"dead_letter": {"hint":true, "reason":"poison", "data":{ }}}`
	e, err := envelope.Decode([]byte(body))
	require.NoError(t, err)
	canonical, err := envelope.Encode(e)
	require.NoError(t, err)
	assert.Equal(t, `{"job":"u","trace_id":"","data":{},`+
		`"meta":{"id":"a","queue":"","lang":"","schema_version":1,"created_at":0,`+
		`"tenant":null,"a\"b":[],"":0},"attempts":0,"dead_letter":{"reason":"poison","error":null,"exception":null,"failed_at":0,`+
		`"original_queue":"","attempts":0,"hint":true,"data":{}},"zeta":{"b":1.50,"b":1e400,"<&>":"\u003c\/ `+"\u2028"+`"},`+
		`"id":"mine","alpha":123456789012345678901234567890}`, string(canonical))

	again, err := envelope.Decode(canonical)
	require.NoError(t, err)
	second, err := envelope.Encode(again)
	require.NoError(t, err)
	assert.Equal(t, string(canonical), string(second), "the canonical form is one")
}

// They belong to the object in which they were found, and share nothing with the body.
func TestUnknownMembersGoWithTheirObject(t *testing.T) {
	t.Parallel()
	body := []byte(`{"job":"u","top":1,"meta":{"schema_version":1,"inner":2},"dead_letter":{"deep":3}}`)
	e, err := envelope.Decode(body)
	require.NoError(t, err)
	clear(body)
	for name, c := range map[string]struct {
		change func(*envelope.Envelope)
		want   []string
	}{
		"as it is":         {func(*envelope.Envelope) {}, []string{"top", "inner", "deep"}},
		"other values":     {func(e *envelope.Envelope) { e.Job, e.Meta.ID = "v", "b" }, []string{"top", "inner", "deep"}},
		"no longer parked": {func(e *envelope.Envelope) { e.DeadLetter = nil }, []string{"top", "inner"}},
		"parked anew":      {func(e *envelope.Envelope) { e.DeadLetter = &envelope.DeadLetter{} }, []string{"top", "inner"}},
		"another message": {
			func(e *envelope.Envelope) { e.Meta = envelope.Meta{ID: "new", SchemaVersion: envelope.SchemaVersion} },
			[]string{"top", "deep"},
		},
		"a reply": {
			func(e *envelope.Envelope) { *e = envelope.Envelope{Job: "reply", Meta: e.Meta} },
			[]string{"inner"},
		},
	} {
		changed := e
		c.change(&changed)
		out, err := envelope.Encode(changed)
		require.NoError(t, err, name)
		for _, key := range []string{"top", "inner", "deep"} {
			assert.Equal(t, slices.Contains(c.want, key), bytes.Contains(out, []byte(`"`+key+`":`)), "%s: %s in %s", name, key, out)
		}
	}
}

// An envelope without any is equal to one that was not decoded, and a Meta can be compared.
func TestNoUnknownMembersLeaveNothing(t *testing.T) {
	t.Parallel()
	e, err := envelope.Decode([]byte(valid))
	require.NoError(t, err)
	assert.Equal(t, sample(), e)
	assert.True(t, e.Meta == sample().Meta)
}

// unknownIn lists the members of an object that are not known, with their values compacted, in their order.
func unknownIn(t *testing.T, object json.RawMessage, known ...string) []string {
	t.Helper()
	if object == nil || string(object) == "null" {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(object))
	_, err := dec.Token()
	require.NoError(t, err)
	var members []string
	for dec.More() {
		key, err := dec.Token()
		require.NoError(t, err)
		var value json.RawMessage
		require.NoError(t, dec.Decode(&value))
		if !slices.Contains(known, key.(string)) {
			members = append(members, key.(string)+":"+compact(t, value))
		}
	}
	return members
}

// requireUnknownKept asserts that both bodies have the same unknown members in the same places.
func requireUnknownKept(t *testing.T, body, encoded []byte) {
	t.Helper()
	var before, after map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(body, &before))
	require.NoError(t, json.Unmarshal(encoded, &after))
	top := []string{"job", "urn", "trace_id", "data", "meta", "attempts", "dead_letter"}
	require.Equal(t, unknownIn(t, body, top...), unknownIn(t, encoded, top...))
	meta := []string{"id", "queue", "lang", "schema_version", "created_at"}
	require.Equal(t, unknownIn(t, before["meta"], meta...), unknownIn(t, after["meta"], meta...))
	letter := []string{"reason", "error", "exception", "failed_at", "original_queue", "attempts", "lang"}
	require.Equal(t, unknownIn(t, before["dead_letter"], letter...), unknownIn(t, after["dead_letter"], letter...))
}
