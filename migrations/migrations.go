// Package migrations creates and upgrades the table in which txidem keeps its records.
//
// Programs call [Apply] when they start; any number of replicas may do so at once.
//
// # With another tool
//
// People who keep their schema in a tool of their own take the SQL text instead. [SQL] returns the text of each step, up
// and down, rendered for the names of a [Config]; [FS] holds the same for the default names, as files named
// NNNN_name.up.sql and NNNN_name.down.sql. The text is plain SQL without transaction control, so that a tool can run it in
// a transaction of its own, and without the annotations of any tool:
//
//   - psql runs a step by psql -1 -v ON_ERROR_STOP=1 -f;
//   - golang-migrate reads FS as it is, by its iofs source;
//   - goose wants both directions in one file, Up below a line "-- +goose Up" and Down below a line "-- +goose Down";
//   - tern wants both in one file, with its line "---- create above / drop below ----" between them;
//   - for others, Up is what to run, once, in the order of the versions.
//
// Use one way or the other: the version table is kept by this package alone, and a schema made by another tool has none.
//
// All functions are safe for concurrent use.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/txidem/txidem-go/internal/sqlgen"
)

// FS holds the migration files. They are valid as they stand for the default schema and table.
//
//go:embed *.sql
var FS embed.FS

// Migration is one step between two versions of the schema.
type Migration struct {
	Version int    // 1, 2, 3 …
	Name    string // the part of the file name after the number
	Up      string // SQL that takes the schema from Version-1 to Version
	Down    string // SQL that takes it back
}

// SQL returns all migrations in order, rendered for the schema and table of cfg. A nil cfg means the default names.
// It fails for names that PostgreSQL would not store verbatim.
func SQL(cfg *Config) ([]Migration, error) {
	c, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	return c.render()
}

func (c Config) render() ([]Migration, error) {
	files, err := fs.Glob(FS, "*.up.sql")
	if err != nil {
		return nil, err
	}
	steps := make([]Migration, 0, len(files)) // Glob sorts, and the numbers have leading zeros
	for _, file := range files {
		m, err := c.step(file)
		if err != nil {
			return nil, err
		}
		steps = append(steps, m)
	}
	return steps, nil
}

func (c Config) step(upFile string) (Migration, error) {
	base := strings.TrimSuffix(upFile, ".up.sql")
	number, name, _ := strings.Cut(base, "_")
	version, err := strconv.Atoi(number)
	if err != nil {
		return Migration{}, fmt.Errorf("migrations: file %s: the name does not begin with a number", upFile)
	}
	up, err := c.text(upFile)
	if err != nil {
		return Migration{}, err
	}
	down, err := c.text(base + ".down.sql")
	return Migration{Version: version, Name: name, Up: up, Down: down}, err
}

// text renders one file. The files name the table only as the quoted default name and never in a comment or a string, so
// replacing that text by another quoted name is all there is to do.
func (c Config) text(file string) (string, error) {
	text, err := FS.ReadFile(path.Clean(file))
	if err != nil {
		return "", err
	}
	standard := sqlgen.Qualify(sqlgen.DefaultSchema, sqlgen.DefaultTable)
	return strings.ReplaceAll(string(text), standard, sqlgen.Qualify(c.Schema, c.Table)), nil
}
