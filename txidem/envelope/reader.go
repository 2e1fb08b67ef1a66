package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// reader reads typed members of an object and keeps the first error, after which everything it returns is to be thrown away.
type reader struct {
	object
	err error
}

func (r *reader) fail(kind error, key, detail string) {
	if r.err == nil {
		r.err = &Error{Kind: kind, Field: r.field(key), Detail: detail}
	}
}

// text reads a string; "" when it is missing.
func (r *reader) text(key string) string {
	if s := r.optionalText(key); s != nil {
		return *s
	}
	return ""
}

// optionalText reads a string; nil when it is missing. After checkText, unquoting loses nothing.
func (r *reader) optionalText(key string) *string {
	raw, ok := r.member(key)
	if !ok {
		return nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		r.fail(ErrMalformed, key, "this is not a string, and must be one: make the producer send it in quotes")
		return nil
	}
	return &s
}

// count reads a non-negative integer that fits an int; 0 when it is missing.
func (r *reader) count(key string) int { return int(r.integer(key, strconv.IntSize)) }

// millis reads a time in Unix milliseconds; 0 when it is missing.
func (r *reader) millis(key string) int64 { return r.integer(key, 64) }

// notInteger is what is wrong with a number that cannot be read as one.
const notInteger = "this is not an integer, written without quotes, fraction and exponent: make the producer send one"

func (r *reader) integer(key string, bits int) int64 {
	raw, ok := r.member(key)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(string(raw), 10, bits)
	switch {
	case errors.Is(err, strconv.ErrRange):
		r.fail(ErrMalformed, key, "the number is too large; a counter or clock of the producer is wrong: fix the producer")
	case err != nil:
		r.fail(ErrMalformed, key, notInteger)
	case n < 0:
		r.fail(ErrMalformed, key, "the number is negative; a counter or clock of the producer is wrong: fix the producer")
	}
	return n
}

// data returns the payload's bytes; nil when it is missing.
func (r *reader) data() json.RawMessage {
	raw, ok := r.member("data")
	if !ok {
		return nil
	}
	if !bytes.HasPrefix(raw, []byte("{")) {
		r.fail(ErrMalformed, "data", "this is not a JSON object, and must be one; some languages write an empty map as []: "+
			"fix the producer")
		return nil
	}
	return raw
}
