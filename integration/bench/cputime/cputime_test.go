package cputime_test

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/bench/cputime"
	"github.com/txidem/txidem-go/integration/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.Config{}) }

// A process that works uses processor time.
func TestClient(t *testing.T) {
	t.Parallel()
	before, err := cputime.Client()
	if err != nil {
		require.ErrorIs(t, err, cputime.ErrNotMeasurable)
		t.Skip(err)
	}
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; {
		continue
	}
	after, err := cputime.Client()
	require.NoError(t, err)
	require.Greater(t, after-before, time.Millisecond)
}

// A query that keeps the server busy shows in the time of its backends, and a lost backend is an error, not less time.
func TestBackends(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), testdb.New(t).DSN())
	require.NoError(t, err)
	defer pool.Close()
	b, err := cputime.Find(t.Context(), pool)
	elsewhere := runtime.GOOS != "linux" || os.Getenv("TXIDEM_DSN")+os.Getenv("DATABASE_URL") != ""
	if elsewhere && errors.Is(err, cputime.ErrNotMeasurable) {
		t.Skip(err)
	}
	require.NoError(t, err)
	require.Equal(t, 1, b.Len())
	before, err := b.Time()
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `SELECT count(*) FROM generate_series(1, 100000)`)
	require.NoError(t, err)
	after, err := b.Time()
	require.NoError(t, err)
	require.Greater(t, after-before, time.Millisecond)

	pool.Reset() // ends its idle connection
	require.Eventually(t, func() bool {
		_, err := b.Time()
		return err != nil
	}, time.Minute, time.Millisecond)
}
