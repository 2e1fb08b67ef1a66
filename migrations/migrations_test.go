package migrations

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/internal/sqlgen"
)

func TestFilesAreNumberedFromOneWithoutGaps(t *testing.T) {
	t.Parallel()
	steps, err := SQL(nil)
	require.NoError(t, err)
	require.NotEmpty(t, steps)
	for i, m := range steps {
		require.Equal(t, i+1, m.Version)
		require.NotEmpty(t, m.Name)
		require.NotEmpty(t, m.Up)
		require.NotEmpty(t, m.Down)
	}
	files, err := fs.Glob(FS, "*.sql")
	require.NoError(t, err)
	require.Len(t, files, 2*len(steps), "every file is an up or a down of a step")
}

// The files stand for themselves with the default names, and hold nothing that a renaming could break.
func TestFilesAreWrittenForTheDefaultNames(t *testing.T) {
	t.Parallel()
	steps, err := SQL(nil)
	require.NoError(t, err)
	first, err := fs.ReadFile(FS, "0001_messages.up.sql")
	require.NoError(t, err)
	require.Equal(t, string(first), steps[0].Up)
	for _, m := range steps {
		for line := range strings.Lines(m.Up + m.Down) {
			code, comment, _ := strings.Cut(line, "--")
			require.NotContains(t, comment, sqlgen.DefaultTable, "a name in a comment could end the comment")
			require.Equal(t, strings.Count(code, sqlgen.DefaultTable),
				strings.Count(code, sqlgen.Qualify(sqlgen.DefaultSchema, sqlgen.DefaultTable)),
				"the table is always qualified and quoted: %s", line)
		}
	}
}

func TestSQLForOtherNames(t *testing.T) {
	t.Parallel()
	steps, err := SQL(&Config{Schema: `My "schema"`, Table: `x"; drop table y; --`})
	require.NoError(t, err)
	for _, m := range steps {
		require.Contains(t, m.Up, `"My ""schema"""."x""; drop table y; --"`)
		require.NotContains(t, m.Up+m.Down, sqlgen.DefaultTable)
	}
}

func TestConfigRefusesByName(t *testing.T) {
	t.Parallel()
	for field, cfg := range map[string]Config{
		"Schema":      {Schema: "a\nb"},
		"Table":       {Table: strings.Repeat("t", 53)},
		"LockTimeout": {LockTimeout: -1},
	} {
		_, err := SQL(&cfg)
		var refused *ConfigError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, field, refused.Field)
		require.NotEmpty(t, refused.Problem)
		require.EqualError(t, err, "migrations: "+field+" "+refused.Problem+": correct the Config given to migrations")
	}
}
