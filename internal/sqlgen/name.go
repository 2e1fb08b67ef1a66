package sqlgen

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// The names used when none are configured. The migration files are written with them.
const (
	DefaultSchema = "public"
	DefaultTable  = "txidem_messages"
)

// versionSuffix makes the name of the table in which package migrations keeps the applied versions.
const versionSuffix = "_migrations"

// PostgreSQL cuts identifiers at 63 bytes without an error, so that two long names could become one.
const maxIdentifier = 63

// MaxTable is the longest table name, in bytes: the version table's name has to fit as well.
const MaxTable = maxIdentifier - len(versionSuffix)

// Qualify returns the quoted, schema-qualified name, safe to put into a statement.
func Qualify(schema, name string) string {
	return pgx.Identifier{schema, name}.Sanitize()
}

// VersionTable returns the name of the version table that belongs to table.
func VersionTable(table string) string {
	return table + versionSuffix
}

// CheckSchema says why schema cannot be used, or returns nil.
func CheckSchema(schema string) error {
	return checkName(schema, maxIdentifier)
}

// CheckTable says why table cannot be used, or returns nil.
func CheckTable(table string) error {
	return checkName(table, MaxTable)
}

// checkName accepts whatever PostgreSQL stores verbatim when it is quoted. Control characters are legal there and
// refused here: a line break inside a name would end an SQL comment or a line of a migration tool's input.
func checkName(name string, limit int) error {
	switch {
	case name == "":
		return errors.New("is empty")
	case !utf8.ValidString(name):
		return errors.New("is not valid UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%q has a control character", name)
	case len(name) > limit:
		return fmt.Errorf("%q has %d bytes: at most %d are allowed", name, len(name), limit)
	}
	return nil
}
