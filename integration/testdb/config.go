package testdb

import (
	"context"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/txidem/txidem-go/integration/pgserver"
)

// Config says what the databases of a test package look like and on which server they are.
type Config struct {
	// Setup fills the template database, once for the package. The connection is closed after it. Default: the template
	// stays empty.
	Setup func(ctx context.Context, conn *pgx.Conn) error

	// Order lists the places to look for a server. Default pgserver.TestOrder().
	Order []pgserver.Source

	// Settings are server settings, as in pgserver.Options. Default: none.
	Settings map[string]string

	// Finish is called after the last test, before the server is stopped: for what a package says about its whole run.
	// Default: nothing is called.
	Finish func()

	// Leaks are options for the check for leaked goroutines after the last test. Default: every goroutine that is left
	// fails the run.
	Leaks []goleak.Option
}
