// Package envelope reads and writes the BabelQueue wire envelope, schema version 1: a JSON object in which producers in
// several languages send their messages, with the members job, trace_id, data, meta, attempts and, on a dead-letter queue
// only, dead_letter. Its JSON Schema is https://babelqueue.com/contracts/message-envelope.schema.json; where that schema is
// stricter or laxer than this package, [Decode] says so. Nothing else in txidem needs this package: a message of any type
// will do that has an id.
//
// A consumer deduplicates by meta.id, so the one thing that decoding must never do is give two messages the same id.
// [Decode] therefore refuses a body that readers of JSON understand in different ways (see [ErrAmbiguous]), among them those
// that encoding/json alone would quietly change: it replaces invalid UTF-8 and lone surrogates by U+FFFD, takes the last of
// two equal keys, and lets "ID" stand in for "id". What cannot merge two messages is read leniently.
//
// All functions of this package are pure and safe for concurrent use.
package envelope
