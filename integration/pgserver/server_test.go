package pgserver_test

import (
	"cmp"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/txidem/txidem-go/integration/pgserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// unsetEnv hides the environment of whoever runs the tests.
func unsetEnv(t *testing.T) {
	t.Helper()
	for _, name := range []string{"TXIDEM_DSN", "DATABASE_URL", "TXIDEM_SERVER", "TXIDEM_IMAGE"} {
		t.Setenv(name, "")
	}
}

// startLocal starts a server from local binaries, or skips the test where there are none.
func startLocal(t *testing.T) *pgserver.Server {
	t.Helper()
	unsetEnv(t)
	s, err := pgserver.Start(t.Context(), pgserver.Options{
		Order: []pgserver.Source{pgserver.FromLocal}, Log: func(line string) { t.Log(line) },
	})
	if err != nil && strings.Contains(err.Error(), "no folder with initdb and postgres") {
		t.Skipf("needs PostgreSQL server binaries (initdb, postgres): install them or set TXIDEM_PGBIN\n%v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// show returns the value of a server setting.
func show(t *testing.T, dsn, name string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var value string
	if err := conn.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestLocalServer(t *testing.T) {
	s := startLocal(t)
	for name, want := range map[string]string{
		"fsync": "on", "max_connections": "300", "listen_addresses": "127.0.0.1", "server_encoding": "UTF8",
	} {
		if got := show(t, s.DSN(), name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(s.String(), "from local binaries in ") {
		t.Errorf("the line is %q", s)
	}
	if s.Source() != pgserver.FromLocal {
		t.Errorf("source = %q", s.Source())
	}
}

func TestStopLeavesNothing(t *testing.T) {
	s := startLocal(t)
	folder := show(t, s.DSN(), "data_directory")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("stat %s: %v, want it gone", folder, err)
	}
	if conn, err := pgx.Connect(t.Context(), s.DSN()); err == nil {
		conn.Close(t.Context())
		t.Error("the server still answers")
	}
	if err := s.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
}

func TestKillAndRestart(t *testing.T) {
	s := startLocal(t)
	l, ok := s.Local()
	if !ok {
		t.Fatal("no Local behind a local server")
	}
	run(t, s.DSN(), "CREATE TABLE kept (id int)")
	dsn := l.DSN()
	for range 3 {
		run(t, s.DSN(), "INSERT INTO kept VALUES (1)")
		l.Kill()
		if conn, err := pgx.Connect(t.Context(), dsn); err == nil {
			conn.Close(t.Context())
			t.Fatal("the killed server still answers")
		}
		if err := l.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if l.DSN() != dsn {
		t.Errorf("DSN %q became %q", dsn, l.DSN())
	}
	run(t, dsn, "DO $$ BEGIN ASSERT (SELECT count(*) FROM kept) = 3; END $$")
}

// run executes one statement on a connection of its own.
func run(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestDockerServer(t *testing.T) {
	image, forced := os.Getenv("TXIDEM_IMAGE"), os.Getenv("TXIDEM_SERVER") == "docker"
	unsetEnv(t)
	t.Setenv("TXIDEM_IMAGE", image)
	s, err := pgserver.Start(t.Context(), pgserver.Options{Order: []pgserver.Source{pgserver.FromDocker}})
	if err != nil && forced {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("needs a Docker engine and an image (.ci/engine start; TXIDEM_IMAGE)\n%v", err)
	}
	t.Cleanup(func() { s.Stop() })
	for name, want := range map[string]string{"fsync": "on", "max_connections": "300"} {
		if got := show(t, s.DSN(), name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if want := "from Docker image " + cmp.Or(image, pgserver.DefaultImage); !strings.Contains(s.String(), want) {
		t.Errorf("the line is %q, want %q in it", s, want)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if conn, err := pgx.Connect(t.Context(), s.DSN()); err == nil {
		conn.Close(t.Context())
		t.Error("the server still answers")
	}
	if err := s.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
}
