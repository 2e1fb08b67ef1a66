package worker

import (
	"fmt"
	"io"
	"strings"
)

// Stage is how far a worker has come with the message in its hands.
type Stage string

// The stages. A worker reports each when it has been reached, but Acking just before the ack is sent.
const (
	Ready     Stage = "ready"     // connected to broker and database, no message yet
	Received  Stage = "received"  // a delivery is there
	Committed Stage = "committed" // PostgreSQL has confirmed the COMMIT of the delivery's effect
	Acking    Stage = "acking"    // the next step is the ack
	Failed    Stage = "failed"    // the delivery failed with the error that follows; settle says what becomes of it
)

// Report is one line that a worker writes to its standard output.
type Report struct {
	Stage Stage  // that has been reached
	Text  string // the error, with Failed
}

// ParseReport reads a line that write has written.
func ParseReport(line string) Report {
	stage, text, _ := strings.Cut(line, " ")
	return Report{Stage: Stage(stage), Text: text}
}

// write sends the report to the parent in a single write, so that it arrives even when the worker is killed right after.
func (r Report) write(w io.Writer) {
	line := strings.ReplaceAll(string(r.Stage)+" "+r.Text, "\n", " ")
	_, _ = fmt.Fprintln(w, strings.TrimSpace(line)) // a parent that is gone ends the worker through its standard input
}
