package pgserver_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/txidem/txidem-go/integration/pgserver"
)

// hideServers makes sure that no source but a download can work.
func hideServers(t *testing.T) {
	t.Helper()
	unsetEnv(t)
	t.Setenv("TXIDEM_PGBIN", t.TempDir())
	t.Setenv("TXIDEM_IMAGE", "txidem-no-such-image:none")
}

// startMustFail returns the error of a Start that must not succeed, nor take longer than somebody waits for.
func startMustFail(t *testing.T, opts pgserver.Options) *pgserver.UnavailableError {
	t.Helper()
	begin := time.Now()
	s, err := pgserver.Start(t.Context(), opts)
	if err == nil {
		defer s.Stop()
		t.Fatalf("got %v", s)
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("took %v", took)
	}
	var missing *pgserver.UnavailableError
	if !errors.As(err, &missing) {
		t.Fatalf("%T, want an *UnavailableError: %v", err, err)
	}
	t.Log(err)
	return missing
}

// mustSay fails the test for each text that the error lacks.
func mustSay(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("no %q in:\n%v", text, err)
		}
	}
}

func TestNothingWorks(t *testing.T) {
	hideServers(t)
	order := []pgserver.Source{pgserver.FromDSN, pgserver.FromDocker, pgserver.FromLocal}
	if os.Geteuid() == 0 { // an ordinary user may have the download
		order = pgserver.TestOrder()
	}
	err := startMustFail(t, pgserver.Options{Order: order})
	if len(err.Attempts) != len(order) {
		t.Errorf("%d attempts, want %d", len(err.Attempts), len(order))
	}
	for _, source := range order {
		mustSay(t, err, "\n  - "+string(source)+": ")
	}
	mustSay(t, err, "apt-get install postgresql", "start a Docker engine", "set TXIDEM_DSN=")
}

func TestForcedSourceIsNotReplaced(t *testing.T) {
	for _, source := range []pgserver.Source{pgserver.FromDSN, pgserver.FromDocker, pgserver.FromLocal} {
		t.Run(string(source), func(t *testing.T) {
			hideServers(t)
			t.Setenv("TXIDEM_SERVER", string(source))
			err := startMustFail(t, pgserver.Options{})
			if len(err.Attempts) != 1 || err.Attempts[0].Source != source {
				t.Errorf("attempts: %v", err.Attempts)
			}
			mustSay(t, err, "TXIDEM_SERVER allows no other source")
		})
	}
}

func TestUnknownForcedSource(t *testing.T) {
	unsetEnv(t)
	t.Setenv("TXIDEM_SERVER", "podman")
	_, err := pgserver.Start(t.Context(), pgserver.Options{})
	if err == nil || !strings.Contains(err.Error(), `"podman" names no source`) {
		t.Errorf("error = %v", err)
	}
}

func TestDeadDSNEndsTheSearch(t *testing.T) {
	unsetEnv(t)
	t.Setenv("TXIDEM_DSN", "postgres://nobody@127.0.0.1:1/none")
	err := startMustFail(t, pgserver.Options{})
	if len(err.Attempts) != 1 {
		t.Errorf("attempts: %v", err.Attempts)
	}
	mustSay(t, err, "TXIDEM_DSN is set", "unset TXIDEM_DSN")
}

func TestDatabaseURLOfSomethingElseIsPassedOver(t *testing.T) {
	unsetEnv(t)
	t.Setenv("TXIDEM_PGBIN", t.TempDir())
	t.Setenv("DATABASE_URL", "mysql://root@127.0.0.1/shop")
	err := startMustFail(t, pgserver.Options{Order: []pgserver.Source{pgserver.FromDSN, pgserver.FromLocal}})
	mustSay(t, err, "something other than a PostgreSQL", "is no folder of server binaries")
}

func TestDSNOfARunningServer(t *testing.T) {
	running := startLocal(t)
	t.Setenv("TXIDEM_DSN", running.DSN())
	s, err := pgserver.Start(t.Context(), pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Source() != pgserver.FromDSN || s.DSN() != running.DSN() || !strings.HasSuffix(s.String(), " from TXIDEM_DSN") {
		t.Errorf("got %s, %s: %s", s.Source(), s.DSN(), s)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	show(t, running.DSN(), "server_version") // fails the test if Stop ended a server that is not ours
}

// A start that fails must say why in the server's words and leave nothing behind.
func TestServerThatDoesNotStart(t *testing.T) {
	startLocal(t)
	temp := reachableTemp(t)
	err := startMustFail(t, pgserver.Options{
		Order:    []pgserver.Source{pgserver.FromLocal},
		Settings: map[string]string{"max_connections": "none"},
	})
	mustSay(t, err, `invalid value for parameter "max_connections": "none"`)
	if left, _ := filepath.Glob(filepath.Join(temp, "txidem-pg-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// reachableTemp points TMPDIR at an empty folder that every account may enter.
func reachableTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "txidem-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	return dir
}

// Root's own TMPDIR is often one that the server's account cannot enter.
func TestUnreachableTempFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, who starts the server as somebody else")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	if folder := show(t, startLocal(t).DSN(), "data_directory"); strings.HasPrefix(folder, dir) {
		t.Errorf("data folder %s is below a folder only root can enter", folder)
	}
}
