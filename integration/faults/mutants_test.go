package faults

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/testdb"
)

// mutant is the library with one of its safeguards taken out.
type mutant struct {
	name  string
	edits []edit

	// cells are the part of the matrix that it runs, as for -run, and complaint is what the matrix has to say about it.
	cells     string
	complaint string
}

// edit replaces a text of a file, which must be there exactly once: otherwise a change of the library could turn a mutant
// into no mutant.
type edit struct{ file, old, new string }

const (
	anyOfOneStatement = "TestMatrix/^Process$/^warm$/^one_statement$"
	endedByHandlers   = "TestMatrix/^Process$/^warm$/^(raw_ROLLBACK|ROLLBACK_and_BEGIN)_first$/^drop"
)

var mutants = []mutant{
	{
		name: "claim outside the transaction",
		edits: []edit{{
			"txidem/claim.go",
			"\trows, err := t.beginWith(ctx, beginning, g.sql.Claim, id, g.consumer, g.wait, g.idle)\n",
			`	tag, err := t.conn.Exec(ctx, g.sql.Claim, id, g.consumer, g.wait, g.idle)
	rows := tag.RowsAffected()
	if err == nil {
		_, err = t.beginWith(ctx, beginning, g.sql.Mark, g.idle)
	}
`,
		}},
		cells:     anyOfOneStatement + "/^drop",
		complaint: "lost: acked true",
	},
	{
		name: "unknown COMMIT taken for success",
		edits: []edit{{
			"txidem/commit.go",
			"\treturn &commitUnknownError{cause: cause, doubtful: t.doubtful}\n",
			"\t_ = cause\n\treturn nil\n",
		}},
		cells:     anyOfOneStatement + "/^drop",
		complaint: "lost: acked true",
	},
	{
		name: "no guard on the end of the transaction",
		edits: []edit{
			{"txidem/commit.go", "\tif t.doubtful {\n", "\tif false {\n"},
			{"txidem/commit.go", "\tcase conn.TxStatus() == handlertx.StatusAborted:\n", "\tcase false:\n"},
			{"txidem/commit.go", "\tcase conn.TxStatus() == handlertx.StatusIdle:\n", "\tcase false:\n"},
		},
		cells:     endedByHandlers,
		complaint: "lost: acked true",
	},
}

// A matrix that cannot fail proves nothing. Each mutant of the library turns it red, and the library itself does not, in
// the same cells.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("each mutant is a build of the suite")
	}
	dsn := testdb.New(t).Server().DSN()
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			out, err := runCells(t, m.build(t), m.cells, dsn)
			var failed *exec.ExitError
			require.ErrorAs(t, err, &failed, "the matrix is green:\n%s", out)
			require.Contains(t, out, "FAIL: TestMatrix/")
			require.Contains(t, out, m.complaint)
		})
	}
	t.Run("none", func(t *testing.T) {
		this, err := os.Executable()
		require.NoError(t, err)
		for _, m := range mutants {
			out, err := runCells(t, this, m.cells, dsn)
			require.NoError(t, err, "the matrix is red without a mutation:\n%s", out)
			require.Contains(t, out, "PASS: TestMatrix/")
		}
	})
}

// build compiles this package with mutated copies of the library's files laid over them, and returns the test binary.
func (m mutant) build(t *testing.T) string {
	t.Helper()
	overlay, binary := m.overlay(t), filepath.Join(t.TempDir(), "faults.test")
	args := []string{"test", "-c", "-overlay", overlay, "-o", binary}
	if builtWithRace() {
		args = append(args, "-race") // what this binary was built from is in the build cache that way
	}
	out, err := exec.CommandContext(t.Context(), "go", append(args, ".")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// overlay writes the mutated copies, and the file that go build reads to find them.
func (m mutant) overlay(t *testing.T) string {
	t.Helper()
	texts := map[string]string{}
	for _, e := range m.edits {
		path, err := filepath.Abs(filepath.Join("..", "..", filepath.FromSlash(e.file)))
		require.NoError(t, err)
		if texts[path] == "" {
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			texts[path] = string(raw)
		}
		texts[path] = e.apply(t, texts[path])
	}
	dir, replace := t.TempDir(), map[string]string{}
	for path, text := range texts {
		replace[path] = filepath.Join(dir, filepath.Base(path))
		require.NoError(t, os.WriteFile(replace[path], []byte(text), 0o600))
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	file := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, raw, 0o600))
	return file
}

func (e edit) apply(t *testing.T, text string) string {
	t.Helper()
	require.Equal(t, 1, strings.Count(text, e.old),
		"%s has changed: bring the mutant up to date, so that this text is there exactly once:\n%s", e.file, e.old)
	return strings.Replace(text, e.old, e.new, 1)
}

func builtWithRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// runCells runs a part of the matrix on the server of this run, and returns what it printed.
func runCells(t *testing.T, binary, cells, dsn string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "-test.run", cells, "-test.v", "-test.timeout", "5m")
	cmd.Env = append(os.Environ(), "TXIDEM_DSN="+dsn, "TXIDEM_SERVER=")
	out, err := cmd.CombinedOutput()
	dropKept(t, dsn, string(out))
	return string(out), err
}

var keptDatabase = regexp.MustCompile(`kept for a look, drop it yourself: \S*(txidem_test_[a-z0-9]+)`)

// dropKept drops the databases that a run which was to fail has kept.
func dropKept(t *testing.T, dsn, out string) {
	t.Helper()
	for _, found := range keptDatabase.FindAllStringSubmatch(out, -1) {
		conn := connect(t, dsn)
		_, err := conn.Exec(t.Context(), `DROP DATABASE IF EXISTS `+found[1]+` WITH (FORCE)`)
		require.NoError(t, err)
	}
}
