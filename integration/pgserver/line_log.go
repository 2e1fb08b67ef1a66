package pgserver

import (
	"fmt"
	"strings"
	"sync"
)

// lineLog keeps what is logged, for an error to quote. It is safe for concurrent use.
type lineLog struct {
	mu   sync.Mutex
	text strings.Builder
}

// Printf keeps one entry. It makes lineLog a logger of testcontainers.
func (l *lineLog) Printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.text, format+"\n", args...)
}

// Write keeps raw output. It makes lineLog the logger of embedded-postgres.
func (l *lineLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns everything kept.
func (l *lineLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
