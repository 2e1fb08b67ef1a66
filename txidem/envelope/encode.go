package envelope

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Encode writes e in the canonical form: one line of JSON, the members in the order job, trace_id, data, meta, attempts, and
// dead_letter only when it is there; never urn. Strings are not HTML-escaped. Data that is nil, empty or null becomes {};
// otherwise only the white space between its tokens is dropped.
//
// What Decode found and does not know is written behind the members of its object, in the order of the body, and as
// untouched as data: so a message can be decoded, counted up and sent on by a consumer that is older than its producer.
//
// It refuses what Decode would refuse, with the same kinds of [*Error], so that what it returns always decodes, and to the
// same id. It reads its output back to make sure of that. Like Decode, it does not check the formats and enumerations of
// the schema.
func Encode(e Envelope) ([]byte, error) {
	if err := checkStrings(e); err != nil {
		return nil, err
	}
	body, err := marshal(e)
	if err != nil {
		return nil, &Error{
			Kind: ErrMalformed, Field: "data", Cause: err,
			Detail: "this is not JSON, or is nested too deeply: set Data to a JSON object",
		}
	}
	if _, err := Decode(body); err != nil {
		return nil, err
	}
	return body, nil
}

// wire is an Envelope as it is written: the order and names of the members are those of its fields.
type wire struct {
	Job        string          `json:"job"`
	TraceID    string          `json:"trace_id"`
	Data       json.RawMessage `json:"data"`
	Meta       json.RawMessage `json:"meta"`
	Attempts   int             `json:"attempts"`
	DeadLetter json.RawMessage `json:"dead_letter,omitempty"`
}

func marshal(e Envelope) ([]byte, error) {
	w := wire{Job: e.Job, TraceID: e.TraceID, Data: e.Data, Attempts: e.Attempts}
	if data := bytes.TrimSpace(e.Data); len(data) == 0 || string(data) == "null" {
		w.Data = json.RawMessage("{}")
	}
	var err error
	if w.Meta, err = withUnknown(e.Meta, e.Meta.unknown); err != nil {
		return nil, err
	}
	if d := e.DeadLetter; d != nil {
		if w.DeadLetter, err = withUnknown(d, d.unknown); err != nil {
			return nil, err
		}
	}
	return withUnknown(w, e.unknown)
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
