package pgserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// findBinaries returns the folder of the server binaries to use: TXIDEM_PGBIN, which must then be fit, or the first fit
// one among those that pg_config names, that PATH leads to, and where packages put them.
func findBinaries() (string, error) {
	if dir := os.Getenv(envBinaries); dir != "" {
		if err := complete(dir); err != nil {
			return "", fmt.Errorf("%s: %w", envBinaries, err)
		}
		return filepath.Abs(dir)
	}
	dirs := candidates()
	for _, dir := range dirs {
		if complete(dir) == nil {
			return dir, nil
		}
	}
	looked := "pg_config, PATH and the usual folders name none"
	if len(dirs) > 0 {
		looked = "looked in " + strings.Join(dirs, ", ")
	}
	return "", errors.New("no folder with initdb and postgres (" + looked + "); " +
		"the server package may be missing where only the client is installed")
}

// complete reports what a folder lacks to start a server from it.
func complete(dir string) error {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%s is no folder of server binaries: %w", dir, err)
		}
	}
	return nil
}

// candidates lists the folders worth a look, best first.
func candidates() []string {
	var dirs []string
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, resolvedDir(path))
	}
	for _, pattern := range packageFolders() {
		found, _ := filepath.Glob(pattern) // fails only for a malformed pattern
		dirs = append(dirs, newestFirst(found)...)
	}
	return unique(dirs)
}

// packageFolders are the places of Debian's, PGDG's and Homebrew's packages, Postgres.app and the Windows installer.
func packageFolders() []string {
	if runtime.GOOS == "windows" {
		return []string{`C:\Program Files\PostgreSQL\*\bin`}
	}
	return []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
		"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	}
}

// resolvedDir returns the folder of a program, behind symbolic links where there are any: a lone link to initdb lies
// beside no postgres.
func resolvedDir(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	return filepath.Dir(path)
}

// newestFirst sorts folders whose paths differ in a version number.
func newestFirst(dirs []string) []string {
	slices.SortFunc(dirs, func(a, b string) int { return majorVersion(b) - majorVersion(a) })
	return dirs
}

// majorVersion returns the first number in the name of the folder above bin ("postgresql@17", "15", "pgsql-16"), or 0.
func majorVersion(dir string) int {
	notDigit := func(r rune) bool { return r < '0' || r > '9' }
	fields := strings.FieldsFunc(filepath.Base(filepath.Dir(dir)), notDigit)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(fields[0]) // only digits: fails for an absurd length, and 0 is fine then
	return n
}

// unique drops repetitions and keeps the order.
func unique(dirs []string) []string {
	var out []string
	for _, dir := range dirs {
		if dir != "" && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}
