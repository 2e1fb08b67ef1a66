package pgserver

import (
	"fmt"
	"strings"
)

// Attempt is a source that was tried and why it gave no server.
type Attempt struct {
	Source Source
	Err    error
}

// UnavailableError says that no source gave a server. Its text names each one tried, why it failed, and what would
// make it work.
type UnavailableError struct {
	Attempts []Attempt
	Forced   bool // TXIDEM_SERVER allowed this one source only
}

// Error returns a text of several lines.
func (e *UnavailableError) Error() string {
	var b strings.Builder
	b.WriteString("pgserver: no PostgreSQL server to be had. Tried:\n")
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "  - %s: %s\n", a.Source, indent(a.Err.Error()))
	}
	if e.Forced {
		fmt.Fprintf(&b, "%s allows no other source. Unset it, or:\n", envServer)
	} else {
		b.WriteString("To get one, do one of these:\n")
	}
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "  - %s: %s\n", a.Source, remedies[a.Source])
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Unwrap returns the errors of the attempts.
func (e *UnavailableError) Unwrap() []error {
	errs := make([]error, len(e.Attempts))
	for i, a := range e.Attempts {
		errs[i] = a.Err
	}
	return errs
}

// remedies say what makes a source work.
var remedies = map[Source]string{
	FromDSN: "set TXIDEM_DSN=postgres://user:password@host:5432/database of a running server " +
		"whose user may create databases",
	FromDocker: "start a Docker engine; TXIDEM_IMAGE chooses another image",
	FromLocal: `install a PostgreSQL server (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install
    postgresql-server; macOS: brew install postgresql), or name the folder of its binaries in TXIDEM_PGBIN`,
	FromEmbedded: "run as an ordinary user with access to the internet",
}

// indent keeps the lines of a longer text, such as a server's log, under the point they belong to.
func indent(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}
