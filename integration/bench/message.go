package main

import (
	"math/rand/v2"

	"github.com/google/uuid"
)

// consumer is what the records are made for: 16 characters, as the figures for WAL bytes assume.
const consumer = "bench-consumer-1"

// source makes message ids of 36 characters: random UUIDs, of which a share was processed before.
type source struct {
	duplicates float64  // 0 to 1
	old        []string // processed before; may be empty when duplicates is 0
}

// take returns the ids of one delivery. It is safe for concurrent use.
func (s source) take(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		if s.duplicates > 0 && rand.Float64() < s.duplicates {
			ids[i] = s.old[rand.IntN(len(s.old))]
		} else {
			ids[i] = uuid.NewString()
		}
	}
	return ids
}
