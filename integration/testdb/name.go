package testdb

import (
	"crypto/rand"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
)

// randomName returns a database name that no other run has: "txidem_test_" and a random part.
func randomName(kind string) string {
	return "txidem_" + kind + "_" + strings.ToLower(rand.Text()[:16])
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

func dropStatement(name string) string {
	return "DROP DATABASE IF EXISTS " + quote(name) + " WITH (FORCE)"
}

// withDatabase changes the database of a connection string, in either of its two forms. Of a keyword that comes twice in
// the keyword=value form, the last one counts.
func withDatabase(dsn, database string) string {
	if u, err := url.Parse(dsn); err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql") {
		u.Path = "/" + database
		return u.String()
	}
	return dsn + " dbname=" + database
}
