package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// object holds the known members of a JSON object, by their exact keys, and the others as they are.
type object struct {
	path    string
	members map[string]json.RawMessage
	unknown *unknown // nil when there is none
}

// keep keeps a member of the object.
func (o *object) keep(key string, value json.RawMessage, known []string) {
	if slices.Contains(known, key) {
		o.members[key] = value
		return
	}
	if o.unknown == nil {
		o.unknown = new(unknown)
	}
	*o.unknown = append(*o.unknown, member{key, value})
}

// member returns a member's raw value. A member that is null counts as missing.
func (o object) member(key string) (json.RawMessage, bool) {
	raw, ok := o.members[key]
	return raw, ok && string(raw) != "null"
}

// field returns the path of a member, as Error.Field gives it.
func (o object) field(key string) string {
	if o.path == "" {
		return key
	}
	return o.path + "." + key
}

// readObject reads the object in raw, which must be valid JSON. It compares keys as the strings that they stand for, so that
// "\u0069d" is the key id.
func readObject(path string, raw []byte, known []string) (object, error) {
	o := object{path: path, members: make(map[string]json.RawMessage, len(known))}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return object{}, &Error{
			Kind: ErrMalformed, Field: path, Cause: err,
			Detail: "this is not a JSON object, and must be one; the body may be no envelope: look at what the producer sends",
		}
	}
	seen := make(map[string]bool)
	for dec.More() {
		key, value, err := readMember(dec)
		if err != nil {
			return object{}, &Error{Kind: ErrMalformed, Field: path, Cause: err, Detail: "a member cannot be read"}
		}
		if err := o.checkKey(key, known, seen); err != nil {
			return object{}, err
		}
		seen[key] = true
		o.keep(key, value, known)
	}
	return o, nil
}

func readMember(dec *json.Decoder) (string, json.RawMessage, error) {
	token, err := dec.Token()
	if err != nil {
		return "", nil, err
	}
	key, ok := token.(string)
	if !ok {
		return "", nil, fmt.Errorf("a key is a %T", token)
	}
	var value json.RawMessage
	err = dec.Decode(&value)
	return key, value, err
}

// checkKey refuses a key that another reader of the same object could take for one that is also there.
func (o object) checkKey(key string, known []string, seen map[string]bool) error {
	if seen[key] {
		return &Error{
			Kind: ErrAmbiguous, Field: o.field(clip(key)),
			Detail: "the key occurs twice, and readers disagree on which one counts; something on the way adds it again: " +
				"fix the producer",
		}
	}
	for _, k := range known {
		if k != key && strings.EqualFold(k, key) {
			return &Error{
				Kind: ErrAmbiguous, Field: o.field(clip(key)),
				Detail: fmt.Sprintf("the key differs from %q by case only, and some readers take one for the other: "+
					"make the producer write it in lower case", k),
			}
		}
	}
	return nil
}

// clip keeps a hostile key from becoming a log line of megabytes.
func clip(key string) string {
	const limit = 64
	if len(key) <= limit {
		return key
	}
	return strings.ToValidUTF8(key[:limit], "") + "…"
}
