package envelope

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Encode writes e in the canonical form: one line of JSON, the members in the order job, trace_id, data, meta, attempts, and
// dead_letter only when it is there; never urn. Strings are not HTML-escaped. Data that is nil, empty or null becomes {}; otherwise
// only the white space between its tokens is dropped.
//
// It refuses what Decode would refuse, with the same kinds of [*Error], so that what it returns always decodes, and to the same id.
// It reads its output back to make sure of that. Like Decode, it does not check the formats and enumerations of the schema.
func Encode(e Envelope) ([]byte, error) {
	if err := checkStrings(e); err != nil {
		return nil, err
	}
	body, err := marshal(e)
	if err != nil {
		return nil, &Error{Kind: ErrMalformed, Field: "data", Detail: "this is not JSON, or is nested too deeply: set Data to a JSON object", Cause: err}
	}
	if _, err := Decode(body); err != nil {
		return nil, err
	}
	return body, nil
}

// marshal leaves the order and names of the members to the struct tags.
func marshal(e Envelope) ([]byte, error) {
	type plain Envelope // without MarshalJSON, which would call Encode again
	if data := bytes.TrimSpace(e.Data); len(data) == 0 || string(data) == "null" {
		e.Data = json.RawMessage("{}")
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(plain(e)); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// checkStrings refuses what cannot be refused afterwards: encoding/json replaces invalid UTF-8 while it writes.
func checkStrings(e Envelope) error {
	for _, t := range texts(e) {
		if !utf8.ValidString(t.value) {
			return &Error{
				Kind: ErrAmbiguous, Field: t.field,
				Detail: "invalid UTF-8, which JSON cannot hold, and replacing it would make different strings equal: " +
					"encode binary values as text, for example as hex",
			}
		}
	}
	return nil
}

type text struct{ field, value string }

// texts lists everything in e that is text, by its path.
func texts(e Envelope) []text {
	all := []text{
		{"job", e.Job},
		{"trace_id", e.TraceID},
		{"data", string(e.Data)},
		{"meta.id", e.Meta.ID},
		{"meta.queue", e.Meta.Queue},
		{"meta.lang", e.Meta.Lang},
	}
	if d := e.DeadLetter; d != nil {
		all = append(
			all,
			text{"dead_letter.reason", d.Reason},
			text{"dead_letter.error", deref(d.Error)},
			text{"dead_letter.exception", deref(d.Exception)},
			text{"dead_letter.original_queue", d.OriginalQueue},
			text{"dead_letter.lang", d.Lang},
		)
	}
	return all
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
