package migrations

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// ConfigError says which field of a Config was refused. Nothing was sent to the server.
type ConfigError struct {
	Field   string // the field's name
	Problem string // what is wrong with it
}

func (e *ConfigError) Error() string {
	return "migrations: " + e.Field + " " + e.Problem + ": correct the Config given to migrations"
}

// refusal makes a ConfigError of what is wrong with a field, and nil of nothing.
func refusal(field string, problem error) error {
	if problem == nil {
		return nil
	}
	return &ConfigError{Field: field, Problem: problem.Error()}
}

// failure is an error with what was being done and the next step, in one line.
type failure struct {
	doing string
	cause error
	hint  string // begins with ": ", or is empty
}

func (f *failure) Error() string {
	return "migrations: " + f.doing + ": " + oneLine.Replace(f.cause.Error()) + f.hint
}

func (f *failure) Unwrap() error { return f.cause }

// oneLine joins the lines that pgx gives an error of connecting, one for each address.
var oneLine = strings.NewReplacer("\n\t", " ", "\n", "; ", "\t", " ")

// explain adds to an error what was being done and the next step. What it has explained already stays as it is.
func (c Config) explain(doing string, err error) error {
	var explained *failure
	if err == nil || errors.As(err, &explained) {
		return err
	}
	return &failure{doing: doing, cause: err, hint: c.hint(err)}
}

// SQLSTATEs with a next step of their own.
const (
	invalidSchemaName = "3F000"
	undefinedTable    = "42P01"
	lockNotAvailable  = "55P03"
	duplicateTable    = "42P07"
	insufficientRight = "42501"
	notSupported      = "0A000" // a transaction that writes, on a standby
)

func (c Config) hint(err error) string {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return ""
	}
	switch pgErr.SQLState() {
	case invalidSchemaName:
		return fmt.Sprintf(": schema %q does not exist: create it first", c.Schema)
	case undefinedTable:
		return fmt.Sprintf(": table %q of schema %q was migrated before and is gone: restore it, or drop its version table too",
			c.Table, c.Schema)
	case lockNotAvailable:
		return fmt.Sprintf(": another migration or an open transaction held its lock for %s: end it and try again",
			c.LockTimeout.Round(time.Millisecond))
	case duplicateTable:
		return fmt.Sprintf(": table %q exists in schema %q and was not made by this package: "+
			"keep the tool that made it, or name another Table", c.Table, c.Schema)
	case insufficientRight:
		return fmt.Sprintf(": the role needs USAGE and CREATE on schema %q, and must own table %q to change it", c.Schema, c.Table)
	case notSupported:
		return ": where the server is a standby, connect to the primary"
	default:
		return ""
	}
}
