package envelope

import (
	"encoding/json"
	"time"
)

// SchemaVersion is the only meta.schema_version that this package reads and writes.
const SchemaVersion = 1

// Envelope is one message. Its values are as in the body: nothing is trimmed, case-folded or normalized.
//
// An Envelope is a plain value; concurrent reads are safe, and concurrent writes are not. Copies share Data and DeadLetter.
type Envelope struct {
	// Job says what kind of message this is, a URN. Never empty after Decode.
	Job string

	// TraceID is shared by all messages of one causal chain. It identifies no message.
	TraceID string

	// Data is the payload, a JSON object. Decode copies its bytes as they stand in the body; nil where data is missing or null.
	Data json.RawMessage

	// Meta is what the producer said of the message.
	Meta Meta

	// Attempts counts the deliveries as the transport sees them. Never negative after Decode.
	Attempts int

	// DeadLetter is nil unless the message was dead-lettered.
	DeadLetter *DeadLetter

	unknown *unknown
}

// ID returns Meta.ID verbatim; it is empty when the message has none. The method expression Envelope.ID is a
// func(Envelope) string, fit to be the id function of a wrapped handler.
func (e Envelope) ID() string { return e.Meta.ID }

// MarshalJSON is [Encode], so that json.Marshal writes an Envelope in its canonical form too (json.Marshal adds its own HTML
// escapes, which mean the same to every reader).
func (e Envelope) MarshalJSON() ([]byte, error) { return Encode(e) }

// UnmarshalJSON is [Decode], so that json.Unmarshal is no way around its checks. On error e is left as it was.
func (e *Envelope) UnmarshalJSON(body []byte) error {
	decoded, err := Decode(body)
	if err != nil {
		return err
	}
	*e = decoded
	return nil
}

// Meta is the producer's description of a message.
type Meta struct {
	// ID identifies this message, and no other. Empty when the body has none.
	ID string `json:"id"`

	// Queue is the logical queue that the message was sent to.
	Queue string `json:"queue"`

	// Lang is the producer's language tag, such as "php" or "go". Any value is accepted.
	Lang string `json:"lang"`

	// SchemaVersion is always the constant SchemaVersion after Decode, and must be for Encode.
	SchemaVersion int `json:"schema_version"`

	// CreatedAt is the time of production in Unix milliseconds; 0 where it is missing. Never negative after Decode.
	CreatedAt int64 `json:"created_at"`

	unknown *unknown
}

// CreatedTime returns CreatedAt as a time in UTC, and the zero Time when CreatedAt is 0.
func (m Meta) CreatedTime() time.Time {
	if m.CreatedAt == 0 {
		return time.Time{}
	}
	return time.UnixMilli(m.CreatedAt).UTC()
}

// DeadLetter says why and when a message was dead-lettered.
type DeadLetter struct {
	// Reason is "failed", "unknown_urn" or "poison" in schema version 1. Any value is accepted.
	Reason string `json:"reason"`

	// Error is the message of the last error, nil where it is missing or null.
	Error *string `json:"error"`

	// Exception is the name of the error's type in the producer's language, nil where it is missing or null.
	Exception *string `json:"exception"`

	// FailedAt is the time of dead-lettering in Unix milliseconds. Never negative after Decode.
	FailedAt int64 `json:"failed_at"`

	// OriginalQueue is the queue that the message was consumed from.
	OriginalQueue string `json:"original_queue"`

	// Attempts counts the deliveries made before. Never negative after Decode.
	Attempts int `json:"attempts"`

	// Lang is the language tag of the consumer that dead-lettered the message; empty where it is missing.
	Lang string `json:"lang,omitempty"`

	unknown *unknown
}
