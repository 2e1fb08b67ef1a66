package pgserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// stopLimit bounds Server.Stop.
const stopLimit = 30 * time.Second

// Server is a PostgreSQL that answers. It is safe for concurrent use.
type Server struct {
	source Source
	dsn    string
	origin string // where it came from, in words that follow "PostgreSQL 15.18"
	line   string
	local  *Local

	end      func(context.Context) error
	stopOnce sync.Once
	stopErr  error
}

// Start tries the sources of opts in their order and returns the first server that answers.
//
// A DSN that is set but does not answer ends the search with an error, as does a source that TXIDEM_SERVER forces: what
// was asked for is never replaced by something else. When nothing works, the error is an *UnavailableError.
func Start(ctx context.Context, opts Options) (*Server, error) {
	order, forced, err := opts.order()
	if err != nil {
		return nil, err
	}
	missing := &UnavailableError{Forced: forced}
	for _, source := range order {
		s, err := open(ctx, source, opts)
		if err == nil {
			return s, s.announce(ctx, opts.Log)
		}
		missing.Attempts = append(missing.Attempts, Attempt{Source: source, Err: err})
		if ctx.Err() != nil || errors.Is(err, errDSNDead) {
			break
		}
	}
	return nil, missing
}

// open gets a server from one source. What it started is ended again when it returns an error.
func open(ctx context.Context, source Source, opts Options) (*Server, error) {
	switch source {
	case FromDSN:
		return openDSN(ctx)
	case FromDocker:
		return openDocker(ctx, opts.settings())
	case FromLocal:
		return openLocal(ctx, opts)
	case FromEmbedded:
		return openEmbedded(ctx, opts.settings())
	}
	return nil, fmt.Errorf("%q is not a source", source)
}

// announce asks the server for its version and hands the line to log.
func (s *Server) announce(ctx context.Context, log func(string)) error {
	version, err := serverVersion(ctx, s.dsn)
	if err != nil {
		return errors.Join(err, s.Stop())
	}
	s.line = fmt.Sprintf("PostgreSQL %s %s", version, s.origin)
	if log != nil {
		log(s.line)
	}
	return nil
}

// DSN returns the connection string of the server, for a role that may create databases (with FromDSN: as far as the
// named role may).
func (s *Server) DSN() string { return s.dsn }

// Source returns the source the server came from.
func (s *Server) Source() Source { return s.source }

// String returns the line that says which server this is, such as
// "PostgreSQL 15.18 from local binaries in /usr/lib/postgresql/15/bin".
func (s *Server) String() string { return s.line }

// Local returns the process behind a server from FromLocal, and false for every other source.
func (s *Server) Local() (*Local, bool) { return s.local, s.local != nil }

// Stop ends the server and removes what was made for it, within 30 seconds. A server from FromDSN is left as it is.
// Calls after the first one return what the first one returned.
func (s *Server) Stop() error {
	s.stopOnce.Do(func() {
		if s.end == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		s.stopErr = s.end(ctx)
	})
	return s.stopErr
}

// serverVersion returns the version without the packager's addition to it: "15.18".
func serverVersion(ctx context.Context, dsn string) (string, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", fmt.Errorf("pgserver: connect to the server just found: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var version string
	err = conn.QueryRow(ctx, "SELECT split_part(current_setting('server_version'), ' ', 1)").Scan(&version)
	if err != nil {
		return "", fmt.Errorf("pgserver: ask the server for its version: %w", err)
	}
	return version, nil
}
