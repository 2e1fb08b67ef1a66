package pgserver

import (
	"fmt"
	"os"
	"strings"
)

// Source is a way to get a server. Its value is the word that TXIDEM_SERVER takes for it.
type Source string

// The sources that Start knows.
const (
	FromDSN      Source = "dsn"
	FromDocker   Source = "docker"
	FromLocal    Source = "local"
	FromEmbedded Source = "embedded"
)

// TestOrder returns the order for tests and benchmarks: DSN, Docker, local binaries, embedded.
func TestOrder() []Source { return []Source{FromDSN, FromDocker, FromLocal, FromEmbedded} }

// DemoOrder returns the order for the demo. Local binaries come before Docker, since they start faster.
func DemoOrder() []Source { return []Source{FromDSN, FromLocal, FromDocker, FromEmbedded} }

// forcedSource returns the source that TXIDEM_SERVER names, and "" when it is not set.
func forcedSource() (Source, error) {
	name := os.Getenv(envServer)
	if name == "" {
		return "", nil
	}
	for _, s := range TestOrder() {
		if string(s) == strings.ToLower(name) {
			return s, nil
		}
	}
	return "", fmt.Errorf("pgserver: %s=%q names no source: set it to dsn, docker, local or embedded, or unset it",
		envServer, name)
}
