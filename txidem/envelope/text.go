package envelope

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Lengths of the escapes in a JSON string.
const (
	shortEscape = len(`\n`)
	unitEscape  = len(`\u0000`)
)

// checkText refuses text that encoding/json would replace by U+FFFD, which makes different strings equal. body must be
// valid JSON.
func checkText(body []byte) error {
	if i := invalidUTF8(body); i < len(body) {
		return &Error{Kind: ErrAmbiguous, Detail: fmt.Sprintf(
			"invalid UTF-8 at byte %d, which readers replace, so that different ids become equal; "+
				"the text may be Latin-1, or was cut inside a character: fix the producer", i)}
	}
	if i := loneSurrogate(body); i < len(body) {
		return &Error{Kind: ErrAmbiguous, Detail: fmt.Sprintf(
			"half of a surrogate pair at byte %d, which readers replace, so that different ids become equal; "+
				"a UTF-16 string was cut inside a character: fix the producer", i)}
	}
	return nil
}

// invalidUTF8 returns the offset of the first byte that is not part of valid UTF-8, or len(text).
func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return len(text)
	}
	i := 0
	for i < len(text) {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		i += size
	}
	return i
}

// loneSurrogate returns the offset of the first \u escape that stands for half of a surrogate pair without the other half
// next to it, or len(body). In valid JSON a backslash occurs in strings only, where it begins an escape.
func loneSurrogate(body []byte) int {
	for i := 0; i < len(body); {
		next := bytes.IndexByte(body[i:], '\\')
		if next < 0 {
			break
		}
		i += next
		size, ok := escape(body[i:])
		if !ok {
			return i
		}
		i += size
	}
	return len(body)
}

// escape returns the length of the escape that text begins with, both halves of a pair taken together, and whether it
// stands for a character.
func escape(text []byte) (size int, ok bool) {
	unit, ok := codeUnit(text)
	if !ok {
		return shortEscape, true
	}
	if !utf16.IsSurrogate(unit) {
		return unitEscape, true
	}
	other, ok := codeUnit(text[unitEscape:])
	return 2 * unitEscape, ok && utf16.DecodeRune(unit, other) != utf8.RuneError
}

// codeUnit returns the UTF-16 code unit of the \u escape that text begins with.
func codeUnit(text []byte) (rune, bool) {
	if len(text) < unitEscape || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:unitEscape]), 16, 16)
	return rune(unit), err == nil
}
