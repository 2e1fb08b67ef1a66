// Package cputime reads how much processor time the two sides of a measurement have used: this process, and the
// server's processes behind the connections to one database.
//
// The client's comes from getrusage, and is that of the whole process. The server's comes from /proc, where Linux tells
// the nanoseconds that a process has run. That needs a server whose processes are visible here: on the same machine, or
// in a container on it. What cannot be read is an error that wraps ErrNotMeasurable and says why.
package cputime

import "errors"

// ErrNotMeasurable is returned when a processor time cannot be read here.
var ErrNotMeasurable = errors.New("processor time is not measurable")
