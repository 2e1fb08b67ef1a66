package main

import (
	"encoding/json"
	"fmt"
)

// reading is a number that this run may not have. In JSON it is null then.
type reading struct {
	value   float64
	missing string // why there is no number, or empty
}

// notInThisRun is why a part that was not planned has no number.
const notInThisRun = "not measured in this run"

func (r reading) ok() bool { return r.missing == "" }

// text is the number, or n/a.
func (r reading) text(format string) string {
	if !r.ok() {
		return "n/a"
	}
	return fmt.Sprintf(format, r.value)
}

// MarshalJSON implements json.Marshaler.
func (r reading) MarshalJSON() ([]byte, error) {
	if !r.ok() {
		return []byte("null"), nil
	}
	return json.Marshal(r.value)
}
