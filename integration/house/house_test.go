package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkout is a product of two packages, one of them a command, with a module beside it, and what does not count.
var checkout = map[string]string{
	"go.mod": "module example.com/shop\n",
	"shop/shop.go": `package shop

// Limit is documented, as is its group's other member.
const (
	Limit = 1
	Floor = 0
)

// Shop is documented.
type Shop struct {
	Name string // Name is documented.
	Bare int
	kept int
}

type Till interface{ Open() }

// Sell is documented.
func (s *Shop) Sell() {
	s.kept++
}

func (s Shop) Close() {}

func (t inner) Hidden() {}

type inner struct{ Field int }
`,
	"cmd/main.go": "package main\n\nfunc Exported() {}\n\nfunc main() {\n" +
		strings.Repeat("\tExported()\n", 20) + "}\n",
	"shop/shop_test.go":         "package shop\n\nfunc Tested() {}\n",
	"shop/testdata/broken.go":   "no Go\n",
	"beside/go.mod":             "module example.com/beside\n",
	"beside/a.go":               "package beside\n",
	"beside/deeper/b.go":        "package deeper\n",
	"beside/.hidden/ignored.go": "no Go\n",
}

// All three tables, for a folder whose every number can be counted by hand.
func TestReport(t *testing.T) {
	t.Parallel()
	root := write(t, checkout)
	var out bytes.Buffer
	require.NoError(t, report(&out, root))
	got := regexp.MustCompile(`(?m)[ \t]+`).ReplaceAllString(out.String(), " ")
	require.Equal(t, `Sizes

 files lines file p50 p90 max functions length p50 p90 max under 20 exported without doc
cmd 1 26 26 26 26 2 1 22 22 50 % 0 0
shop 1 27 27 27 27 3 1 3 3 100 % 9 4
product 2 53 26 27 27 5 1 22 22 80 % 9 4
beside 2 2 1 1 1 0 0 0 0 – 0 0

The 5 longest functions of each

lines function file
22 main cmd/main.go
1 Exported cmd/main.go
3 Shop.Sell shop/shop.go
1 Shop.Close shop/shop.go
1 inner.Hidden shop/shop.go

Exported names without a doc comment

name file
Shop.Bare shop/shop.go
Till shop/shop.go
Till.Open shop/shop.go
Shop.Close shop/shop.go

`, got)
}

// A folder without a package, and a file that is no Go, are errors.
func TestReportRefuses(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, report(&bytes.Buffer{}, t.TempDir()), "no Go package")
	broken := write(t, map[string]string{"a/a.go": "no Go\n"})
	require.ErrorContains(t, report(&bytes.Buffer{}, broken), "a/a.go")
}

// Columns are aligned.
func TestTableAligns(t *testing.T) {
	t.Parallel()
	tab := &table{title: "T"}
	tab.add("a", "b")
	tab.add("longer", 1)
	var out bytes.Buffer
	require.NoError(t, tab.write(&out))
	require.Equal(t, "T\n\na       b\nlonger  1\n\n", out.String())
}

// write makes a folder of these files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		at := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
		require.NoError(t, os.WriteFile(at, []byte(text), 0o600))
	}
	return root
}
