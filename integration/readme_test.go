package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// preamble declares what the handler of the README takes for granted.
const preamble = `package readme

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/txidem"
)

var (
	_     pgx.Tx
	_     txidem.Outcome
	pool  *pgxpool.Pool
	guard *txidem.Guard
)

type Charge struct{ ID, Account string; Cents int }

func (c Charge) MessageID() string { return c.ID }

type Broker interface{ Subscribe(queue string, handler func(context.Context, Charge) error) }
`

var codeBlock = regexp.MustCompile("(?ms)^```(go|diff)\n(.*?)^```$")

// Every code block of the README compiles: a Go block as it stands, a diff as what it was and what it becomes. The diff
// changes at most five lines.
func TestReadmeCompiles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	blocks := codeBlock.FindAllStringSubmatch(string(text), -1)
	require.Len(t, blocks, strings.Count(string(text), "\n```")/2, "every block is of a kind that is compiled here")
	kinds := map[string]int{}
	for i, block := range blocks {
		kind, code := block[1], block[2]
		kinds[kind]++
		if kind == "go" {
			requireCompiles(t, i, code)
			continue
		}
		before, after := sides(code)
		requireCompiles(t, i, preamble+before)
		requireCompiles(t, i, preamble+after)
		require.LessOrEqual(t, strings.Count("\n"+code, "\n+"), 5, "lines that change")
		require.LessOrEqual(t, strings.Count("\n"+code, "\n-"), 5, "lines that change")
	}
	require.Positive(t, kinds["go"])
	require.Positive(t, kinds["diff"])
}

// The README stays short enough to be read.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(text), "\n"), 300, "lines")
}

// sides returns the text before and after a diff.
func sides(diff string) (before, after string) {
	for line := range strings.Lines(diff) {
		rest := line[1:]
		if line[0] != '+' {
			before += rest
		}
		if line[0] != '-' {
			after += rest
		}
	}
	return before, after
}

// requireCompiles builds the code as a package of this module, which has what it imports. The underscore keeps a folder that
// a killed run left behind out of what ./... means.
func requireCompiles(t *testing.T, block int, code string) {
	t.Helper()
	dir, err := os.MkdirTemp(".", "_readme_")
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(dir)) }()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "block.go"), []byte(code), 0o600))
	out, err := exec.Command("go", "vet", "./"+dir).CombinedOutput()
	require.NoError(t, err, fmt.Sprintf("code block %d of the README:\n%s\n%s", block+1, out, code))
}
