package txidem

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The limits of the table's key columns, in bytes. With them the largest key is far below what an index entry can hold.
const (
	maxIDBytes       = 1024
	maxConsumerBytes = 255
)

// keyProblem says why PostgreSQL could not store s verbatim as a key column, or returns "".
func keyProblem(s string, limit int) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > limit:
		return fmt.Sprintf("has %d bytes: at most %d are allowed", len(s), limit)
	case strings.IndexByte(s, 0) >= 0:
		return "contains a NUL byte, which PostgreSQL text cannot hold"
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	default:
		return ""
	}
}

// checkID reports whether a delivery with this id is guarded. An empty id is not, unless ids are required. An id that
// cannot be stored is an *IDError.
func checkID(id string, required bool) (guarded bool, err error) {
	if id == "" && !required {
		return false, nil
	}
	if problem := keyProblem(id, maxIDBytes); problem != "" {
		return false, &IDError{ID: id, Problem: problem}
	}
	return true, nil
}

// maxShown is how much of an id is shown, in bytes.
const maxShown = 64

// cut cuts an id to a length that fits a log line.
func cut(id string) string {
	if len(id) <= maxShown {
		return id
	}
	return strings.ToValidUTF8(id[:maxShown], "") + "…"
}

// shown is an id in an error text: cut, and quoted.
func shown(id string) string { return strconv.Quote(cut(id)) }
