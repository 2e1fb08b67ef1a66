package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

// dsnLimit bounds the first connection to a server that should be running.
const dsnLimit = 10 * time.Second

// errDSNDead marks a DSN that is set and of no use, which ends the search.
var errDSNDead = errors.New("the server it names was asked for, so no other is taken")

// openDSN returns the server that the environment names. It has no end: it is not ours to stop.
func openDSN(ctx context.Context) (*Server, error) {
	name, dsn := envDSN, os.Getenv(envDSN)
	if dsn == "" {
		name, dsn = envURL, os.Getenv(envURL)
	}
	if dsn == "" {
		return nil, fmt.Errorf("neither %s nor %s is set", envDSN, envURL)
	}
	if name == envURL && foreign(dsn) {
		return nil, fmt.Errorf("%s is not set, and %s names something other than a PostgreSQL", envDSN, envURL)
	}
	if err := answers(ctx, dsn); err != nil {
		return nil, fmt.Errorf("%s is set: %w (%w: start it, or unset %s)", name, err, errDSNDead, name)
	}
	return &Server{source: FromDSN, dsn: dsn, origin: "from " + name}, nil
}

// foreign reports whether dsn is a URL of another kind of database, as DATABASE_URL may be for somebody else's sake.
func foreign(dsn string) bool {
	u, err := url.Parse(dsn)
	return err == nil && u.Scheme != "" && u.Scheme != "postgres" && u.Scheme != "postgresql"
}

// answers connects once, within dsnLimit.
func answers(ctx context.Context, dsn string) error {
	ctx, cancel := context.WithTimeout(ctx, dsnLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}
