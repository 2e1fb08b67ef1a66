package sqlgen

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Every statement is compared with its golden file, so that a change of SQL is seen in review as SQL.
func TestStatementsAreGolden(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]Statements{
		"default": New(DefaultSchema, DefaultTable),
		"quoted":  New(`Odd "Schema"`, `select; drop table x --`),
	} {
		v := reflect.ValueOf(s)
		for i := range v.NumField() {
			file := filepath.Join("testdata", name+"."+strings.ToLower(v.Type().Field(i).Name)+".sql")
			got := v.Field(i).String() + "\n"
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err, "run go test ./internal/sqlgen -update")
			require.Equal(t, string(want), got, file)
			require.NotContains(t, got, "{table}")
		}
	}
}

func TestCheckNames(t *testing.T) {
	t.Parallel()
	for name, problem := range map[string]string{
		"orders":                       "",
		`Mixed "quotes" and spaces`:    "",
		"select":                       "",
		"таблица":                      "",
		"x; drop table y":              "",
		"":                             "is empty",
		"a\x00b":                       "control character",
		"a\n--b":                       "control character",
		"a\u0085b":                     "control character",
		"\xff":                         "UTF-8",
		strings.Repeat("t", 64):        "has 64 bytes",
		strings.Repeat("\u00e9", 32):   "has 64 bytes",
		strings.Repeat("s", 63):        "",
		strings.Repeat("\u00e9x", 21):  "",
		strings.Repeat("\u00e9xy", 16): "has 64 bytes",
	} {
		err := CheckSchema(name)
		if problem == "" {
			require.NoError(t, err, "%q", name)
		} else {
			require.ErrorContains(t, err, problem, "%q", name)
		}
	}
	require.NoError(t, CheckTable(strings.Repeat("t", MaxTable)))
	require.ErrorContains(t, CheckTable(strings.Repeat("t", MaxTable+1)), "at most 52")
	require.LessOrEqual(t, len(VersionTable(strings.Repeat("t", MaxTable))), maxIdentifier)
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	require.Equal(t, "1ms", Timeout(time.Nanosecond), "0 would mean for ever")
	require.Equal(t, "1ms", Timeout(time.Millisecond))
	require.Equal(t, "2ms", Timeout(time.Millisecond+1))
	require.Equal(t, "5000ms", Timeout(5*time.Second))
	require.Equal(t, "2147483647ms", Timeout(MaxTimeout))
	require.NoError(t, CheckTimeout(MaxTimeout))
	require.Error(t, CheckTimeout(MaxTimeout+1))
	require.Error(t, CheckTimeout(0))
	require.Error(t, CheckTimeout(-time.Second))
}
