package faults

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/pgserver"
	"github.com/txidem/txidem-go/txidem"
)

// The environment variables that set how much is done. The defaults are for every run.
const (
	envServerKills = "FAULTS_SERVER_KILLS" // TestServerCrashes, default 8
	envWorkerKills = "FAULTS_WORKER_KILLS" // TestWorkerCrashes, default 20
	envFailovers   = "FAULTS_FAILOVERS"    // TestFailoverToASynchronousStandby, rounds, default 1
	envChecks      = "FAULTS_CHECKS"       // TestModel, default 60
	envSoak        = "FAULTS_SOAK"         // TestSoak, messages, default 3000
)

// crashStateLimit bounds the wait for a state that must come. Reaching it fails the test; no test passes by waiting.
const crashStateLimit = 60 * time.Second

// pollEvery is the pause between two looks at a state.
const pollEvery = 5 * time.Millisecond

// size reads how much to do.
func size(t *testing.T, env string, usual int) int {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		t.Fatalf("%s is %q: it must be a positive number", env, text)
	}
	return n
}

// startLocal starts a server that the test may kill. Without server binaries the test is skipped, unless somebody asked
// for a size: then it must not pass unseen.
func startLocal(t *testing.T, settings map[string]string) *pgserver.Local {
	t.Helper()
	server, err := pgserver.StartLocal(t.Context(), pgserver.Options{Settings: settings})
	if err != nil && strings.Contains(err.Error(), "no folder with initdb and postgres") && !sizeAsked() {
		t.Skipf("needs PostgreSQL server binaries (initdb, postgres): install them or set TXIDEM_PGBIN\n%v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := server.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return server
}

func sizeAsked() bool {
	for _, env := range []string{envServerKills, envWorkerKills, envFailovers, envSoak} {
		if os.Getenv(env) != "" {
			return true
		}
	}
	return false
}

// newPool makes a pool that lives as long as the test.
func newPool(t *testing.T, dsn string, changes ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	require.NoError(t, err)
	config.MaxConns = 8
	for _, change := range changes {
		change(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// newGuard makes a guard and has it check that the server keeps what it acknowledges: fsync and full_page_writes on,
// synchronous_commit not off.
func newGuard(t *testing.T, pool *pgxpool.Pool, changes ...func(*txidem.Config)) *txidem.Guard {
	t.Helper()
	config := &txidem.Config{Consumer: consumer}
	for _, change := range changes {
		change(config)
	}
	g, err := txidem.New(pool, config)
	require.NoError(t, err)
	require.NoError(t, g.Check(t.Context()))
	return g
}

// connect opens a connection that no fault of the test is aimed at.
func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// waitFor waits until the query, which returns one boolean, says true.
func waitFor(t *testing.T, conn *pgx.Conn, query string, args ...any) {
	t.Helper()
	require.Eventually(t, func() bool {
		var met bool
		require.NoError(t, conn.QueryRow(t.Context(), query, args...).Scan(&met))
		return met
	}, crashStateLimit, pollEvery, query)
}
