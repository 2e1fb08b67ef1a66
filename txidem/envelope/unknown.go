package envelope

import (
	"bytes"
	"encoding/json"
)

// unknown holds the members of an object that this package does not know, in the order of the body. It is not changed once
// Decode has returned, so that copies of an Envelope can share it.
type unknown []member

type member struct {
	key   string
	value json.RawMessage
}

// withUnknown writes an object of this package, and behind its own members those that it does not know.
func withUnknown(known any, more *unknown) (json.RawMessage, error) {
	own, err := marshalText(known)
	if err != nil || more == nil {
		return own, err
	}
	object := bytes.NewBuffer(bytes.TrimSuffix(own, []byte("}"))) // never empty: every object here has members of its own
	for _, m := range *more {
		key, err := marshalText(m.key)
		if err != nil {
			return nil, err
		}
		object.WriteByte(',')
		object.Write(key)
		object.WriteByte(':')
		if err := json.Compact(object, m.value); err != nil {
			return nil, err
		}
	}
	object.WriteByte('}')
	return object.Bytes(), nil
}

// marshalText is json.Marshal without its escapes for HTML.
func marshalText(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
