// Package pgbouncer starts a PgBouncer in transaction mode in front of a test's server.
package pgbouncer

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// startLimit bounds the wait for PgBouncer to answer, and for it to end.
const startLimit = 15 * time.Second

// Bouncer is a running PgBouncer. It is safe for concurrent use.
type Bouncer struct {
	host string
	port uint16
}

// Installed reports whether there is a pgbouncer on the PATH.
func Installed() bool {
	_, err := exec.LookPath("pgbouncer")
	return err == nil
}

// Version returns what pgbouncer says of itself, such as "PgBouncer 1.18.0".
func Version(tb testing.TB) string {
	tb.Helper()
	out, err := exec.Command("pgbouncer", "--version").Output()
	if err != nil {
		tb.Fatalf("pgbouncer: %v", err)
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return first
}

// Start runs a PgBouncer for the server that dsn names, all of its databases included, until tb has ended. The settings
// are lines of its configuration, such as "max_prepared_statements = 200".
func Start(tb testing.TB, dsn string, settings ...string) *Bouncer {
	tb.Helper()
	upstream, err := pgx.ParseConfig(dsn)
	if err != nil {
		tb.Fatalf("pgbouncer: %v", err)
	}
	b := &Bouncer{host: "127.0.0.1", port: freePort(tb)}
	config := filepath.Join(tb.TempDir(), "pgbouncer.ini")
	if err := os.WriteFile(config, []byte(b.config(upstream, settings)), 0o644); err != nil {
		tb.Fatalf("pgbouncer: %v", err)
	}
	run(tb, config)
	b.waitUntilItAnswers(tb, upstream.Database, upstream.User)
	return b
}

func (b *Bouncer) config(upstream *pgx.ConnConfig, settings []string) string {
	lines := []string{
		"[databases]",
		database(upstream),
		"[pgbouncer]",
		"listen_addr = " + b.host,
		fmt.Sprintf("listen_port = %d", b.port),
		"unix_socket_dir =",
		"auth_type = any",
		"pool_mode = transaction",
		"default_pool_size = 30",
		"max_client_conn = 500",
	}
	return strings.Join(append(lines, settings...), "\n") + "\n"
}

// database is the line for all databases of the server. PgBouncer takes no empty password.
func database(upstream *pgx.ConnConfig) string {
	line := fmt.Sprintf("* = host=%s port=%d user=%s", upstream.Host, upstream.Port, upstream.User)
	if upstream.Password != "" {
		line += " password=" + upstream.Password
	}
	return line
}

// run starts the process and ends it with tb. PgBouncer refuses root and takes another account by a flag.
func run(tb testing.TB, config string) {
	tb.Helper()
	args := []string{"-q", config}
	if os.Geteuid() == 0 {
		args = append([]string{"-u", unprivileged(tb)}, args...)
		openFolders(tb, filepath.Dir(config))
	}
	cmd := exec.Command("pgbouncer", args...)
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		tb.Fatalf("pgbouncer: %v", err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if tb.Failed() {
			tb.Logf("pgbouncer's log:\n%s", log.String())
		}
	})
}

func unprivileged(tb testing.TB) string {
	tb.Helper()
	for _, name := range []string{"postgres", "nobody"} {
		if _, err := user.Lookup(name); err == nil {
			return name
		}
	}
	tb.Fatal("pgbouncer refuses to run as root, and this machine has no user postgres or nobody")
	return ""
}

// openFolders lets the other account reach the test's temporary folder.
func openFolders(tb testing.TB, dir string) {
	tb.Helper()
	for ; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			tb.Fatalf("pgbouncer: %v", err)
		}
	}
}

func freePort(tb testing.TB) uint16 {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("pgbouncer: %v", err)
	}
	defer listener.Close()
	return uint16(listener.Addr().(*net.TCPAddr).Port)
}

func (b *Bouncer) waitUntilItAnswers(tb testing.TB, database, role string) {
	tb.Helper()
	dsn := fmt.Sprintf("host=%s port=%s dbname=%s user=%s sslmode=disable default_query_exec_mode=exec",
		b.host, strconv.Itoa(int(b.port)), database, role)
	deadline := time.Now().Add(startLimit)
	for {
		conn, err := pgx.Connect(tb.Context(), dsn)
		if err == nil {
			_ = conn.Close(context.WithoutCancel(tb.Context()))
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("pgbouncer does not answer: %v", err)
		}
		time.Sleep(20 * time.Millisecond) // between two looks, within the deadline
	}
}

// Through makes connections of config go through the PgBouncer.
func (b *Bouncer) Through(config *pgx.ConnConfig) {
	config.Host, config.Port = b.host, b.port
	config.Fallbacks, config.TLSConfig = nil, nil
}
