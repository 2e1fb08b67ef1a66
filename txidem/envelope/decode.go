package envelope

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// The members that Decode interprets, for each object.
var (
	envelopeKeys   = []string{"job", "urn", "trace_id", "data", "meta", "attempts", "dead_letter"}
	metaKeys       = []string{"id", "queue", "lang", "schema_version", "created_at"}
	deadLetterKeys = []string{"reason", "error", "exception", "failed_at", "original_queue", "attempts", "lang"}
)

// Decode reads one envelope from body. The result shares no memory with body.
//
// It refuses, with an [*Error] and a zero Envelope:
//   - what is not exactly one JSON object (ErrMalformed);
//   - invalid UTF-8 and lone surrogates (\ud800 without its other half) in any string or key of the body, data included
//     (ErrAmbiguous);
//   - in the top-level object, meta and dead_letter: the same key twice, or a key that equals one of the envelope's own but
//     for its case (ErrAmbiguous);
//   - a body without job and urn, or with an empty one (ErrNoJob), and one where both are there and differ (ErrAmbiguous);
//   - a meta.schema_version that is missing, or another integer than SchemaVersion (ErrUnsupportedVersion);
//   - a member of the wrong type; above all a meta.id that is a number, since 1 and 1.0 may or may not be the same id
//     (ErrMalformed);
//   - a version, count or time that is written in quotes, with a fraction or with an exponent, and a count or time that is
//     negative or too large for its Go type (ErrMalformed).
//
// It accepts the rest. null means that the member is missing. A missing or empty meta.id gives the id "": such a message
// cannot be deduplicated, and what to do with it is the consumer's decision. An id is decoded verbatim, a NUL in it too.
// Other missing members read as zero values, trace_id and data included, though the schema requires them; the schema's
// formats and enumerations are not checked. Inside data a key may occur twice: its bytes are handed on as they are, so
// nothing is lost, and its interpretation is the handler's.
//
// Members that this package does not know, of the top-level object, meta and dead_letter, are kept for [Encode] and not
// interpreted. They belong to the Envelope, Meta or DeadLetter in which they were found and go where its copies go.
func Decode(body []byte) (Envelope, error) {
	if err := checkSyntax(body); err != nil {
		return Envelope{}, err
	}
	if err := checkText(body); err != nil {
		return Envelope{}, err
	}
	top, err := readObject("", body, envelopeKeys)
	if err != nil {
		return Envelope{}, err
	}
	return decodeEnvelope(top)
}

// Accepts reports whether Decode would read body. It is for who passes messages on and does not read them: a bridge
// between two brokers, or a check in front of a queue, that parks a body which every consumer would refuse and sends the
// others on byte by byte. It does all the work of Decode: who wants the envelope, or why it was refused, calls Decode alone.
func Accepts(body []byte) bool {
	_, err := Decode(body)
	return err == nil
}

// checkSyntax leaves to encoding/json what it does well: syntax, trailing data, and a limit on the depth.
func checkSyntax(body []byte) error {
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		return &Error{
			Kind:   ErrMalformed,
			Detail: "the body is not one JSON value; it was cut off, or is not an envelope: look at what the producer sends",
			Cause:  err,
		}
	}
	return nil
}

// decodeEnvelope reads meta first: a version that we do not know may have changed everything else.
func decodeEnvelope(top object) (Envelope, error) {
	meta, err := decodeMeta(top)
	if err != nil {
		return Envelope{}, err
	}
	letter, err := decodeDeadLetter(top)
	if err != nil {
		return Envelope{}, err
	}
	r := reader{object: top}
	e := Envelope{
		Job:        r.job(),
		TraceID:    r.text("trace_id"),
		Data:       r.data(),
		Meta:       meta,
		Attempts:   r.count("attempts"),
		DeadLetter: letter,
		unknown:    top.unknown,
	}
	if r.err != nil {
		return Envelope{}, r.err
	}
	return e, nil
}

func decodeMeta(top object) (Meta, error) {
	members := object{path: "meta"}
	if raw, ok := top.member("meta"); ok {
		var err error
		if members, err = readObject("meta", raw, metaKeys); err != nil {
			return Meta{}, err
		}
	}
	r := reader{object: members}
	m := Meta{
		SchemaVersion: r.version(),
		ID:            r.text("id"),
		Queue:         r.text("queue"),
		Lang:          r.text("lang"),
		CreatedAt:     r.millis("created_at"),
		unknown:       members.unknown,
	}
	return m, r.err
}

func decodeDeadLetter(top object) (*DeadLetter, error) {
	raw, ok := top.member("dead_letter")
	if !ok {
		return nil, nil
	}
	members, err := readObject("dead_letter", raw, deadLetterKeys)
	if err != nil {
		return nil, err
	}
	r := reader{object: members}
	d := &DeadLetter{
		Reason:        r.text("reason"),
		Error:         r.optionalText("error"),
		Exception:     r.optionalText("exception"),
		FailedAt:      r.millis("failed_at"),
		OriginalQueue: r.text("original_queue"),
		Attempts:      r.count("attempts"),
		Lang:          r.text("lang"),
		unknown:       members.unknown,
	}
	return d, r.err
}

// job reads job, or its inbound alias urn.
func (r *reader) job() string {
	job, urn := r.optionalText("job"), r.optionalText("urn")
	switch {
	case r.err != nil:
		return ""
	case job != nil && urn != nil && *job != *urn:
		r.fail(ErrAmbiguous, "job", "job and urn differ, so it is unclear what the message is; "+
			"make the producer send job alone")
	case job == nil:
		job = urn
	}
	if job == nil || *job == "" {
		r.fail(ErrNoJob, "job", "neither job nor its alias urn names the message; the body may be no envelope: "+
			"make the producer set job")
		return ""
	}
	return *job
}

// version reads schema_version, the one number that says whether the others mean what we think. An integer of any size is
// a version, and but for one of them a version that we do not read.
func (r *reader) version() int {
	const key = "schema_version"
	raw, ok := r.member(key)
	if !ok {
		r.fail(ErrUnsupportedVersion, key, fmt.Sprintf(
			"the version is missing; the body may be no envelope: make the producer set it to %d", SchemaVersion))
		return 0
	}
	version, err := strconv.Atoi(string(raw))
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		r.fail(ErrMalformed, key, notInteger)
	case version != SchemaVersion:
		r.fail(ErrUnsupportedVersion, key, fmt.Sprintf("the version is %s and this consumer reads %d only; "+
			"the producer is newer, or wrong: upgrade the consumer, or fix the producer", clip(string(raw)), SchemaVersion))
	}
	return version
}
