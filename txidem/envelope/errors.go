package envelope

import "errors"

// The kinds of refusal. Every error of this package is an [*Error] that matches exactly one of them by errors.Is. All are permanent:
// the same body is refused again at every redelivery.
var (
	// ErrMalformed: the body is not one JSON object of the envelope's shape. Its syntax is broken, data follows it, it is nested
	// too deeply for encoding/json, or a member has the wrong type or is out of range.
	ErrMalformed = errors.New("malformed envelope")

	// ErrAmbiguous: readers of JSON would disagree on what the body says, so two messages could become one. A string is not valid
	// UTF-8 or holds half of a surrogate pair; a key of the envelope occurs twice or in another case; or job and urn differ.
	ErrAmbiguous = errors.New("ambiguous envelope")

	// ErrNoJob: neither job nor urn says what the message is.
	ErrNoJob = errors.New("envelope without a job")

	// ErrUnsupportedVersion: meta.schema_version is missing, or not SchemaVersion.
	ErrUnsupportedVersion = errors.New("unsupported envelope version")
)

// Error says what is wrong with an envelope, and where. Of the body, which may be confidential, it quotes keys that it refuses (their
// beginning, when they are long), a schema_version, and the one character at which encoding/json stopped.
type Error struct {
	// Kind is one of the package's Err variables.
	Kind error

	// Field is the path of the member at fault, such as "meta.id"; empty when the fault is not in one member.
	Field string

	// Detail says what is wrong, what the likely cause is, and what to do.
	Detail string

	// Cause is the error of encoding/json, or nil.
	Cause error
}

// Error returns the whole story in one line.
func (e *Error) Error() string {
	text := e.Kind.Error()
	if e.Field != "" {
		text += ": " + e.Field
	}
	text += ": " + e.Detail
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns Kind, and Cause where there is one.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}
