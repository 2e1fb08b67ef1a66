package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/examples/payments/internal/demo"
	"github.com/txidem/txidem-go/examples/payments/internal/worker"
	"github.com/txidem/txidem-go/integration/pgserver"
)

// envMain makes the test binary, and the workers that it starts as copies of itself, run the program.
const envMain = "PAYMENTS_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(envMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program prepares the program, as a user would start it.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), envMain+"=1")
	return cmd
}

// output runs the program to its end.
func output(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := program(t, args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), complaints.String(), cmd.ProcessState.ExitCode()
}

// row returns the numbers of the table's row with the given title.
func row(t *testing.T, table, title string) map[string]int {
	t.Helper()
	names := []string{"messages", "deliveries", "killed", "after commit", "charges", "twice", "lost"}
	for line := range strings.Lines(table) {
		rest, found := strings.CutPrefix(strings.TrimSpace(line), title)
		if !found {
			continue
		}
		numbers := map[string]int{}
		for i, name := range names {
			n, err := strconv.Atoi(strings.Fields(rest)[i])
			require.NoError(t, err, line)
			numbers[name] = n
		}
		return numbers
	}
	t.Fatalf("no row %q in:\n%s", title, table)
	return nil
}

func TestThreeHandlersUnderKills(t *testing.T) {
	t.Parallel()
	const messages, kills, seed = 150, 8, 11
	plan := demo.NewPlan(seed, messages, kills)
	published := len(plan.Order)
	require.Greater(t, published, messages)

	stdout, stderr, status := output(t,
		"-messages", fmt.Sprint(messages), "-workers", "3", "-kills", fmt.Sprint(kills), "-seed", fmt.Sprint(seed))
	require.Equal(t, exitOK, status, "%s%s", stdout, stderr)
	assert.Empty(t, stderr, "no progress bar and no complaint")
	assert.Contains(t, stdout, "server: PostgreSQL ")
	assert.Contains(t, stdout, "seed:   11 (-seed 11 ")
	assert.Contains(t, stdout, "exactly once")

	for _, title := range []string{"no dedupe", "seen-set (WrapSeen)", "transaction (Wrap)"} {
		r := row(t, stdout, title)
		assert.Equal(t, messages, r["messages"], title)
		assert.Equal(t, kills, r["killed"], title)
		assert.LessOrEqual(t, r["after commit"], kills, title)
		assert.GreaterOrEqual(t, r["deliveries"], published, title)
		assert.GreaterOrEqual(t, r["deliveries"], published+r["after commit"], "%s: such a message is delivered again", title)
		assert.Zero(t, r["lost"], title)
	}
	plain := row(t, stdout, "no dedupe")
	assert.GreaterOrEqual(t, plain["twice"], published-messages, "every copy is charged")
	assert.GreaterOrEqual(t, plain["charges"], published+plain["after commit"], "a kill after the COMMIT charges again")
	transactional := row(t, stdout, "transaction (Wrap)")
	assert.Equal(t, messages, transactional["charges"])
	assert.Zero(t, transactional["twice"])
}

func TestWithoutKills(t *testing.T) {
	t.Parallel()
	stdout, stderr, status := output(t, "-messages", "20", "-workers", "1", "-kills", "0")
	require.Equal(t, exitOK, status, "%s%s", stdout, stderr)
	assert.Zero(t, row(t, stdout, "transaction (Wrap)")["killed"])
}

func TestForeignDatabaseIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dsn := newDatabase(t, "payments_example_test")
	conn := connect(t, dsn)
	_, err := conn.Exec(ctx, "CREATE TABLE charges (mine int); INSERT INTO charges VALUES (42)")
	require.NoError(t, err)

	stdout, stderr, status := output(t, "-messages", "20", "-workers", "2", "-kills", "2", "-dsn", dsn)
	require.Equal(t, exitOK, status, "%s%s", stdout, stderr)
	assert.Contains(t, stdout, "from -dsn")

	var value, schemas int
	require.NoError(t, conn.QueryRow(ctx, "SELECT mine FROM charges").Scan(&value))
	assert.Equal(t, 42, value)
	require.NoError(t, conn.QueryRow(ctx, `SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'payments\_%'`).Scan(&schemas))
	assert.Zero(t, schemas)
	require.NoError(t, conn.Close(ctx))
}

// newDatabase makes a database for the length of the test and returns its connection string.
func newDatabase(t *testing.T, name string) string {
	t.Helper()
	server, err := pgserver.Start(context.Background(), pgserver.Options{Order: pgserver.DemoOrder()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	conn := connect(t, server.DSN())
	_, err = conn.Exec(context.Background(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := conn.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)")
		assert.NoError(t, err)
		assert.NoError(t, conn.Close(context.Background()))
	})
	dsn, err := url.Parse(server.DSN())
	require.NoError(t, err)
	dsn.Path = "/" + name
	return dsn.String()
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	require.NoError(t, err)
	return conn
}

// A transactional handler that charged a message twice is a fault.
func TestStatusOfAResult(t *testing.T) {
	t.Parallel()
	exact := demo.Result{Mode: worker.Transactional, Messages: 2, Charges: 2}
	twice := demo.Result{Mode: worker.Transactional, Messages: 2, Charges: 3, Twice: 1}
	assert.Equal(t, exitOK, report([]demo.Result{exact}))
	assert.Equal(t, exitFault, report([]demo.Result{twice}))
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"-help"}, exitOK, "-messages"},
		{[]string{"-messages", "0"}, exitNotRun, "-messages is 0"},
		{[]string{"-messages", "-5"}, exitNotRun, "-messages is -5"},
		{[]string{"-workers", "0"}, exitNotRun, "-workers is 0"},
		{[]string{"-workers", "65"}, exitNotRun, "1 to 64"},
		{[]string{"-kills", "-1"}, exitNotRun, "-kills is -1"},
		{[]string{"-messages", "3", "-kills", "4"}, exitNotRun, "more than -messages"},
		{[]string{"-seed", "x"}, exitNotRun, "-seed"},
		{[]string{"-sead", "1"}, exitNotRun, "-sead"},
		{[]string{"more"}, exitNotRun, `"more"`},
		{[]string{"-dsn", "postgres://127.0.0.1:1/none"}, exitNotRun, "-dsn"},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			_, stderr, status := output(t, tt.args...)
			assert.Equal(t, tt.status, status)
			assert.Contains(t, stderr, tt.says)
		})
	}
}
