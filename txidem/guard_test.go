package txidem

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/internal/handlertx"
)

// noServer is a DB that must not be asked: it stands for "nothing was sent".
type noServer struct{ t *testing.T }

func (n noServer) Acquire(context.Context) (*pgxpool.Conn, error) {
	n.t.Error("a connection was asked for")
	return nil, errors.New("no server here")
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cfg   Config
		field string
	}{
		"no consumer":           {Config{}, "Consumer"},
		"NUL in consumer":       {Config{Consumer: "a\x00"}, "Consumer"},
		"invalid UTF-8":         {Config{Consumer: "\xff"}, "Consumer"},
		"half a surrogate pair": {Config{Consumer: "\xed\xa0\x80"}, "Consumer"},
		"long consumer":         {Config{Consumer: strings.Repeat("c", 256)}, "Consumer"},
		"long random consumer":  {Config{Consumer: strings.Repeat("ab1", 100)}, "Consumer"},
		"schema":                {Config{Consumer: "c", Schema: "a\nb"}, "Schema"},
		"table too long":        {Config{Consumer: "c", Table: strings.Repeat("t", 53)}, "Table"},
		"negative wait":         {Config{Consumer: "c", InFlightWait: -1}, "InFlightWait"},
		"wait beyond 24 days":   {Config{Consumer: "c", InFlightWait: 25 * 24 * time.Hour}, "InFlightWait"},
		"read only":             {Config{Consumer: "c", TxOptions: pgx.TxOptions{AccessMode: pgx.ReadOnly}}, "TxOptions"},
		"begins nothing":        {Config{Consumer: "c", TxOptions: pgx.TxOptions{BeginQuery: "SET work_mem = 64"}}, "TxOptions"},
		"commit query":          {Config{Consumer: "c", TxOptions: pgx.TxOptions{CommitQuery: "commit"}}, "TxOptions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, err := New(noServer{t}, &tc.cfg)
			require.Nil(t, g)
			var cfgErr *ConfigError
			require.ErrorAs(t, err, &cfgErr)
			require.Equal(t, tc.field, cfgErr.Field)
			require.True(t, strings.HasPrefix(err.Error(), "txidem: Config: "+tc.field+" "), err.Error())
		})
	}
}

func TestNewWithoutAPool(t *testing.T) {
	t.Parallel()
	_, err := New(nil, &Config{Consumer: "c"})
	require.ErrorContains(t, err, "needs a pool")
	var pool *pgxpool.Pool
	_, err = New(pool, &Config{Consumer: "c"})
	require.ErrorContains(t, err, "needs a pool")
	_, err = New(noServer{t}, nil)
	require.ErrorContains(t, err, "Consumer")
}

// A bad id costs nothing: no connection is taken, no handler runs, in every mode.
func TestBadIDSendsNothing(t *testing.T) {
	t.Parallel()
	g, err := New(noServer{t}, &Config{Consumer: "c"})
	require.NoError(t, err)
	ctx := t.Context()
	const bad = "a\x00"
	handler := func(context.Context, pgx.Tx) error { t.Error("handler ran"); return io.EOF }
	calls := map[string]func() error{
		"Process":  func() error { _, err := g.Process(ctx, bad, handler); return err },
		"Seen":     func() error { _, err := g.Seen(ctx, bad); return err },
		"Remember": func() error { return g.Remember(ctx, bad) },
		"Forget":   func() error { return g.Forget(ctx, bad) },
		"WrapSeen": func() error {
			h := func(context.Context, string) error { t.Error("handler ran"); return nil }
			return WrapSeen(g, func(s string) string { return s }, h)(ctx, bad)
		},
		"Wrap": func() error {
			h := func(context.Context, pgx.Tx, string) error { t.Error("handler ran"); return nil }
			return Wrap(g, func(s string) string { return s }, h)(ctx, bad)
		},
		"ClaimTx": func() error { _, err := g.ClaimTx(ctx, &handlertx.Tx{}, bad); return err },
	}
	for name, call := range calls {
		require.ErrorIs(t, call(), ErrInvalidID, name)
	}
}

func TestNilArguments(t *testing.T) {
	t.Parallel()
	g, err := New(noServer{t}, &Config{Consumer: "c"})
	require.NoError(t, err)
	_, err = g.Process(t.Context(), "id", nil)
	require.ErrorContains(t, err, "needs a handler")
	_, err = g.ClaimTx(t.Context(), nil, "id")
	require.ErrorContains(t, err, "needs a transaction")
	var tx *pgxpool.Tx
	_, err = g.ClaimTx(t.Context(), tx, "id")
	require.ErrorContains(t, err, "needs a transaction")
	_, err = g.ClaimSQL(t.Context(), nil, "id")
	require.ErrorContains(t, err, "needs a transaction")
	id := func(s string) string { return s }
	require.Panics(t, func() { Wrap[string](nil, id, func(context.Context, pgx.Tx, string) error { return nil }) })
	require.Panics(t, func() { Wrap[string](g, id, nil) })
	require.Panics(t, func() { WrapSeen[string](g, nil, func(context.Context, string) error { return nil }) })
	var none *MemoryStore
	require.Panics(t, func() { WrapSeen[string](none, id, func(context.Context, string) error { return nil }) })
}

// A Guard that was not made says what to do, on every way in.
func TestZeroGuard(t *testing.T) {
	t.Parallel()
	var none *Guard
	for _, g := range []*Guard{{}, none} {
		ctx, tx := t.Context(), func(context.Context, pgx.Tx) error { return nil }
		for name, call := range map[string]func() error{
			"Process": func() error { _, err := g.Process(ctx, "m", tx); return err },
			"Pipeline": func() error {
				_, err := g.Pipeline(ctx, "m", func(context.Context, *pgx.Batch) error { return nil })
				return err
			},
			"ProcessBatch": func() error {
				return g.ProcessBatch(ctx, []string{"m"}, func(context.Context, pgx.Tx, []int) error { return nil })[0].Err
			},
			"ClaimTx":  func() error { _, err := g.ClaimTx(ctx, &handlertx.Tx{}, "m"); return err },
			"Seen":     func() error { _, err := g.Seen(ctx, "m"); return err },
			"Remember": func() error { return g.Remember(ctx, "m") },
			"Forget":   func() error { return g.Forget(ctx, "m") },
			"Check":    func() error { return g.Check(ctx) },
		} {
			require.ErrorContains(t, call(), "make it with New", name)
		}
	}
}

// A batch without a handler, and options that are nil, are no panic.
func TestBatchWithoutAHandler(t *testing.T) {
	t.Parallel()
	g, err := New(noServer{t}, &Config{Consumer: "c"})
	require.NoError(t, err)
	results := g.ProcessBatch(t.Context(), []string{"m", "n"}, nil, nil)
	require.Len(t, results, 2)
	require.ErrorContains(t, results[1].Err, "needs a handler")
	require.Equal(t, "n", results[1].ID)
	require.Empty(t, g.ProcessBatch(t.Context(), nil, func(context.Context, pgx.Tx, []int) error { return io.EOF }, nil))
	_, err = g.Process(t.Context(), "\x00", func(context.Context, pgx.Tx) error { return nil }, nil)
	require.ErrorIs(t, err, ErrInvalidID)
}

// As a seen-set a guard knows no message without an id, and with RequireID it refuses one.
func TestEmptyIDInTheSeenSet(t *testing.T) {
	t.Parallel()
	g, err := New(noServer{t}, &Config{Consumer: "c"})
	require.NoError(t, err)
	seen, err := g.Seen(t.Context(), "")
	require.False(t, seen)
	require.NoError(t, err)
	require.NoError(t, g.Remember(t.Context(), ""))
	require.NoError(t, g.Forget(t.Context(), ""))

	g, err = New(noServer{t}, &Config{Consumer: "c", RequireID: true})
	require.NoError(t, err)
	require.ErrorIs(t, g.Remember(t.Context(), ""), ErrInvalidID)
	h := WrapSeen(g, func(s string) string { return s }, func(context.Context, string) error { return nil })
	require.ErrorIs(t, h(t.Context(), ""), ErrInvalidID)
}
