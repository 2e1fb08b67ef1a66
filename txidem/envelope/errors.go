package envelope

import (
	"errors"
	"strconv"
)

// The kinds of refusal. Every error of this package is an [*Error] that matches exactly one of them by errors.Is. All are
// permanent: the same body is refused again at every redelivery.
var (
	// ErrMalformed is returned when the body is not one JSON object of the envelope's shape. Its syntax is broken, data
	// follows it, it is nested too deeply for encoding/json, or a member has the wrong type or is out of range.
	ErrMalformed = errors.New("envelope: malformed")

	// ErrAmbiguous is returned when readers of JSON would disagree on what the body says, so that two messages could become
	// one. A string is not valid UTF-8 or holds half of a surrogate pair; a key of the envelope occurs twice or in another
	// case; or job and urn differ.
	ErrAmbiguous = errors.New("envelope: ambiguous")

	// ErrNoJob is returned when neither job nor urn says what the message is.
	ErrNoJob = errors.New("envelope: no job")

	// ErrUnsupportedVersion is returned when meta.schema_version is missing, or another integer than SchemaVersion.
	ErrUnsupportedVersion = errors.New("envelope: unsupported version")
)

// Error says what is wrong with an envelope, and where. Of the body, which may be confidential, it quotes keys that it
// refuses and a schema_version (their beginning, when they are long), and the one character at which encoding/json stopped.
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

// Error returns the whole story in one line, also where a key that is refused has several.
func (e *Error) Error() string {
	text := e.Kind.Error()
	if e.Field != "" {
		text += ": " + printable(e.Field)
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

// printable quotes a path that a terminal or a log would not show as it is.
func printable(path string) string {
	if quoted := strconv.Quote(path); quoted[1:len(quoted)-1] != path {
		return quoted
	}
	return path
}
