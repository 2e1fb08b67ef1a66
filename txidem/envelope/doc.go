// Package envelope reads and writes the canonical wire envelope, schema version 1: a JSON object with the members job,
// trace_id, data, meta, attempts and, on a dead-letter queue only, dead_letter.
//
// A consumer deduplicates by meta.id, so the one thing that decoding must never do is give two messages the same id. [Decode]
// therefore refuses a body that readers of JSON understand in different ways (see [ErrAmbiguous]), among them those that
// encoding/json alone would quietly change: it replaces invalid UTF-8 and lone surrogates by U+FFFD, takes the last of two equal
// keys, and lets "ID" stand in for "id". What cannot merge two messages is read leniently.
//
// All functions of this package are pure and safe for concurrent use.
package envelope
