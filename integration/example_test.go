package integration

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/testdb"
)

// The examples of the library's documentation run, and print what they say.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"txidem", "migrations"} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			db := testdb.New(t)
			cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-run", "^Example", "./"+folder)
			cmd.Dir = ".."
			cmd.Env = append(os.Environ(), "TXIDEM_EXAMPLE_DSN="+db.DSN())
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			source, err := os.ReadFile("../" + folder + "/example_test.go")
			require.NoError(t, err)
			for _, found := range regexp.MustCompile(`(?m)^func (Example\w+)\(`).FindAllSubmatch(source, -1) {
				require.Contains(t, string(out), "--- PASS: "+string(found[1]), "it has no Output")
			}
		})
	}
}
