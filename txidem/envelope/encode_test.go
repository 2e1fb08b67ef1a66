package envelope_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem/envelope"
)

func sample() envelope.Envelope {
	return envelope.Envelope{
		Job:      "urn:babel:orders:created",
		TraceID:  "trace-1",
		Data:     json.RawMessage(`{"order_id":1042}`),
		Meta:     envelope.Meta{ID: "id-1", Queue: "orders", Lang: "php", SchemaVersion: 1, CreatedAt: 1749132727000},
		Attempts: 2,
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	body, err := envelope.Encode(sample())
	require.NoError(t, err)
	assert.Equal(t, valid, string(body))
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, body := range []string{valid, deadLettered} {
		e, err := envelope.Decode([]byte(body))
		require.NoError(t, err)
		again, err := envelope.Encode(e)
		require.NoError(t, err)
		assert.Equal(t, body, string(again), "a canonical body comes back byte for byte")
	}
}

func TestEncodeWritesTheCanonicalForm(t *testing.T) {
	t.Parallel()
	body := ` { "urn" : "u", "dead_letter": {"reason":"poison"}, "meta": {"schema_version":1, "id":"\u0069<&>"} } `
	e, err := envelope.Decode([]byte(body))
	require.NoError(t, err)
	canonical, err := envelope.Encode(e)
	require.NoError(t, err)
	assert.Equal(t, `{"job":"u","trace_id":"","data":{},`+
		`"meta":{"id":"i<&>","queue":"","lang":"","schema_version":1,"created_at":0},"attempts":0,`+
		`"dead_letter":{"reason":"poison","error":null,"exception":null,"failed_at":0,"original_queue":"","attempts":0}}`,
		string(canonical))
}

func TestEncodeData(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		"":       `{}`,
		" ":      `{}`,
		"null":   `{}`,
		" null ": `{}`,
		"{ \"a\" :\n1.50, \"a\": \"</\\u003c\" }": `{"a":1.50,"a":"</\u003c"}`,
	} {
		e := sample()
		e.Data = json.RawMessage(data)
		body, err := envelope.Encode(e)
		require.NoError(t, err)
		decoded, err := envelope.Decode(body)
		require.NoError(t, err)
		assert.Equal(t, want, string(decoded.Data), "%q", data)
		assert.Equal(t, data, string(e.Data), "the caller's envelope is not changed")
	}
}

func TestEncodeKeepsIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", " id ", "\x00", "\ufffd", `\ud800`, `"`, "\U0001F600", "<&>", "\u2028", "\x7f", "ſK"} {
		e := sample()
		e.Meta.ID = id
		body, err := envelope.Encode(e)
		require.NoError(t, err)
		decoded, err := envelope.Decode(body)
		require.NoError(t, err)
		assert.Equal(t, id, decoded.ID())
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	bad := "\xff"
	letter := func(d envelope.DeadLetter) func(*envelope.Envelope) {
		return func(e *envelope.Envelope) { e.DeadLetter = &d }
	}
	const originalQueue = "dead_letter.original_queue"
	version := func(n int) func(*envelope.Envelope) {
		return func(e *envelope.Envelope) { e.Meta.SchemaVersion = n }
	}
	data := func(text string) func(*envelope.Envelope) {
		return func(e *envelope.Envelope) { e.Data = json.RawMessage(text) }
	}
	for name, c := range map[string]struct {
		spoil func(*envelope.Envelope)
		kind  error
		field string
	}{
		"no job":                {func(e *envelope.Envelope) { e.Job = "" }, envelope.ErrNoJob, "job"},
		"no version":            {version(0), envelope.ErrUnsupportedVersion, "meta.schema_version"},
		"version 2":             {version(2), envelope.ErrUnsupportedVersion, "meta.schema_version"},
		"version -1":            {version(-1), envelope.ErrUnsupportedVersion, "meta.schema_version"},
		"attempts":              {func(e *envelope.Envelope) { e.Attempts = -1 }, envelope.ErrMalformed, "attempts"},
		"created_at":            {func(e *envelope.Envelope) { e.Meta.CreatedAt = -1 }, envelope.ErrMalformed, "meta.created_at"},
		"failed_at":             {letter(envelope.DeadLetter{FailedAt: -1}), envelope.ErrMalformed, "dead_letter.failed_at"},
		"letter's attempts":     {letter(envelope.DeadLetter{Attempts: -1}), envelope.ErrMalformed, "dead_letter.attempts"},
		"UTF-8: job":            {func(e *envelope.Envelope) { e.Job = bad }, envelope.ErrAmbiguous, "job"},
		"UTF-8: trace_id":       {func(e *envelope.Envelope) { e.TraceID = bad }, envelope.ErrAmbiguous, "trace_id"},
		"UTF-8: id":             {func(e *envelope.Envelope) { e.Meta.ID = bad }, envelope.ErrAmbiguous, "meta.id"},
		"UTF-8: queue":          {func(e *envelope.Envelope) { e.Meta.Queue = bad }, envelope.ErrAmbiguous, "meta.queue"},
		"UTF-8: lang":           {func(e *envelope.Envelope) { e.Meta.Lang = bad }, envelope.ErrAmbiguous, "meta.lang"},
		"UTF-8: reason":         {letter(envelope.DeadLetter{Reason: bad}), envelope.ErrAmbiguous, "dead_letter.reason"},
		"UTF-8: error":          {letter(envelope.DeadLetter{Error: &bad}), envelope.ErrAmbiguous, "dead_letter.error"},
		"UTF-8: exception":      {letter(envelope.DeadLetter{Exception: &bad}), envelope.ErrAmbiguous, "dead_letter.exception"},
		"UTF-8: original queue": {letter(envelope.DeadLetter{OriginalQueue: bad}), envelope.ErrAmbiguous, originalQueue},
		"UTF-8: letter's lang":  {letter(envelope.DeadLetter{Lang: bad}), envelope.ErrAmbiguous, "dead_letter.lang"},
		"UTF-8: data":           {data("{\"a\":\"\xff\"}"), envelope.ErrAmbiguous, "data"},
		"surrogate in data":     {data(`{"a":"\ud800"}`), envelope.ErrAmbiguous, ""},
		"data is a list":        {data(`[]`), envelope.ErrMalformed, "data"},
		"data is no JSON":       {data(`{`), envelope.ErrMalformed, "data"},
		"data breaks out":       {data(`{},"meta":{}`), envelope.ErrMalformed, "data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := sample()
			c.spoil(&e)
			body, err := envelope.Encode(e)
			require.ErrorIs(t, err, c.kind)
			assert.Nil(t, body)

			var refusal *envelope.Error
			require.ErrorAs(t, err, &refusal)
			assert.Equal(t, c.field, refusal.Field)
		})
	}
}

// Data may be as deep as encoding/json allows and still too deep inside an envelope.
func TestEncodeRefusesDataTooDeepToDecode(t *testing.T) {
	t.Parallel()
	e := sample()
	e.Data = json.RawMessage(nested(10_000))
	require.True(t, json.Valid(e.Data))
	_, err := envelope.Encode(e)
	require.ErrorIs(t, err, envelope.ErrMalformed)

	e.Data = json.RawMessage(nested(9_999))
	_, err = envelope.Encode(e)
	require.NoError(t, err)
}

func TestMarshalJSON(t *testing.T) {
	t.Parallel()
	body, err := json.Marshal(sample())
	require.NoError(t, err)
	assert.Equal(t, valid, string(body))

	_, err = json.Marshal(envelope.Envelope{})
	require.ErrorIs(t, err, envelope.ErrUnsupportedVersion)
}
