package payment

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/pgserver"
	"github.com/txidem/txidem-go/migrations"
	"github.com/txidem/txidem-go/txidem"
	"github.com/txidem/txidem-go/txidem/envelope"
)

var server *pgserver.Server

func TestMain(m *testing.M) { os.Exit(withServer(m)) }

func withServer(m *testing.M) int {
	var err error
	server, err = pgserver.Start(context.Background(), pgserver.Options{Order: pgserver.DemoOrder()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	status := m.Run()
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// setUp makes a schema of its own for the test, with a guard on it.
func setUp(t *testing.T) (*pgxpool.Pool, *txidem.Guard) {
	t.Helper()
	ctx := context.Background()
	name := fmt.Sprintf("payment_test_%d_%d", os.Getpid(), time.Now().UnixNano())
	cfg, err := pgxpool.ParseConfig(server.DSN())
	require.NoError(t, err)
	cfg.ConnConfig.RuntimeParams["search_path"] = name
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	quoted := pgx.Identifier{name}.Sanitize()
	_, err = pool.Exec(ctx, "CREATE SCHEMA "+quoted)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := pool.Exec(ctx, "DROP SCHEMA "+quoted+" CASCADE")
		assert.NoError(t, err)
	})
	require.NoError(t, CreateTables(ctx, pool))
	_, err = migrations.Apply(ctx, pool, &migrations.Config{Schema: name})
	require.NoError(t, err)
	guard, err := txidem.New(pool, &txidem.Config{Consumer: "ledger", Schema: name})
	require.NoError(t, err)
	return pool, guard
}

// message returns a charge command as it comes from the broker.
func message(t *testing.T) envelope.Envelope {
	t.Helper()
	cmd := Command{MessageID: "m-1", Account: "customer-01", AmountCents: 250}
	body, err := cmd.Encode("trace", time.UnixMilli(1749132727000))
	require.NoError(t, err)
	msg, err := envelope.Decode(body)
	require.NoError(t, err)
	return msg
}

func TestHandlersOnASecondDelivery(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		handler func(*pgxpool.Pool, *txidem.Guard) Handler
		charges int
	}{
		"plain":         {func(p *pgxpool.Pool, _ *txidem.Guard) Handler { return Plain(p) }, 2},
		"seen-set":      {SeenSet, 1},
		"transactional": {func(_ *pgxpool.Pool, g *txidem.Guard) Handler { return Transactional(g) }, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			pool, guard := setUp(t)
			handle := tt.handler(pool, guard)
			require.NoError(t, handle(ctx, message(t)))
			require.NoError(t, handle(ctx, message(t)))

			var charges, entries int
			var paid, balance int64
			require.NoError(t, pool.QueryRow(ctx, "SELECT count(*) FROM charges").Scan(&charges))
			require.NoError(t, pool.QueryRow(ctx, `SELECT count(*), sum(amount_cents) FILTER (WHERE account = 'revenue')::bigint,
				sum(amount_cents)::bigint FROM ledger`).Scan(&entries, &paid, &balance))
			assert.Equal(t, tt.charges, charges)
			assert.Equal(t, 2*tt.charges, entries)
			assert.Equal(t, int64(250*tt.charges), paid)
			assert.Zero(t, balance)
		})
	}
}

// TestSeenSetThatDiesBeforeItRemembers is the gap that the demo looks for, made by hand: the handler has committed and
// nobody has remembered.
func TestSeenSetThatDiesBeforeItRemembers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool, guard := setUp(t)
	require.NoError(t, Plain(pool)(ctx, message(t))) // the part of the worker's life before its death
	require.NoError(t, SeenSet(pool, guard)(ctx, message(t)))
	var charges int
	require.NoError(t, pool.QueryRow(ctx, "SELECT count(*) FROM charges").Scan(&charges))
	assert.Equal(t, 2, charges)
}

func TestParseCommandRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]envelope.Envelope{
		"another job":  {Job: "urn:babel:payments:refund", Data: []byte(`{"account":"a","amount_cents":1}`)},
		"no account":   {Job: Job, Data: []byte(`{"amount_cents":1}`)},
		"no amount":    {Job: Job, Data: []byte(`{"account":"a"}`)},
		"not a number": {Job: Job, Data: []byte(`{"account":"a","amount_cents":"1"}`)},
		"no data":      {Job: Job},
	}
	for name, msg := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseCommand(msg)
			assert.ErrorIs(t, err, ErrBadCommand)
		})
	}
}
