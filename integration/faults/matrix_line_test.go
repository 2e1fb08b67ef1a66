package faults

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/pgproxy"
	"github.com/txidem/txidem-go/txidem"
)

// inFlightWait is short, so that a copy which is left in flight by a black hole is given back to the broker soon.
const inFlightWait = 250 * time.Millisecond

// line is one worker's way to the server, through a proxy of its own. One message at a time goes along it.
type line struct {
	group
	name  string // the application_name of its sessions
	proxy *pgproxy.Proxy
	pool  *pgxpool.Pool // through the proxy
	guard *txidem.Guard
	told  int // messages so far

	// deadline is that of a delivery which is to be broken by a fault that needs one. It grows when the machine is slow.
	deadline time.Duration
}

var lines atomic.Int64

func newLine(t *testing.T, g group) *line {
	t.Helper()
	l := &line{group: g, name: fmt.Sprintf("line%d", lines.Add(1)), deadline: firstDeadline}
	c := g.direct.Config().ConnConfig
	var err error
	l.proxy, err = pgproxy.Start(pgconn.NetworkAddress(c.Host, c.Port))
	require.NoError(t, err)
	t.Cleanup(l.proxy.Close)
	l.pool = g.db.Pool(t, l.through)
	l.guard, err = txidem.New(l.pool, &txidem.Config{Consumer: consumer, InFlightWait: inFlightWait})
	require.NoError(t, err)
	return l
}

// through makes a pool connect by way of the proxy. What depends on the clock is off: a connection is not pinged before
// its use, and no health check borrows the idle ones, so that a delivery would find none and open a new one.
func (l *line) through(c *pgxpool.Config) {
	addr := l.proxy.Addr()
	c.ConnConfig.Host, c.ConnConfig.Port = addr.IP.String(), uint16(addr.Port)
	c.ConnConfig.TLSConfig, c.ConnConfig.Fallbacks = nil, nil
	c.ConnConfig.RuntimeParams["application_name"] = l.name
	c.MaxConns = 3
	c.HealthCheckPeriod = time.Hour
	c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
}

// prepare makes the line ready for a message, on a connection that has run the script, or on a new one.
func (l *line) prepare(t *testing.T) {
	t.Helper()
	if l.conn == cold {
		l.pool.Reset()
		return
	}
	shot := &shot{line: l, story: l.next()}
	require.NoError(t, shot.deliver(t.Context(), ampleTime), "a delivery without a fault")
}

// next makes the next message.
func (l *line) next() *story {
	l.told++
	return newStory(fmt.Sprintf("%s-%d", l.name, l.told))
}

// poll asks the server, directly, until the query says true.
func (l *line) poll(ctx context.Context, query string, args ...any) error {
	for {
		var met bool
		if err := l.direct.QueryRow(ctx, query, args...).Scan(&met); err != nil || met {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w while waiting for: %s", ctx.Err(), query)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// settleLimit bounds the wait for the sessions of a broken delivery to end. Reaching it is a leak.
const settleLimit = 15 * time.Second

// settle waits until every connection is back in the pool, no session of the line is in a transaction, and the sessions
// of connections that were broken have gone. Then nothing can change the database any more. It returns how many did not
// come to an end, and an error that says so.
func (l *line) settle(ctx context.Context) (leaked int, err error) {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	for {
		acquired := int(l.pool.Stat().AcquiredConns())
		var open, sessions int
		err := l.direct.QueryRow(context.WithoutCancel(ctx), `SELECT count(*) FILTER (WHERE xact_start IS NOT NULL), count(*)
			FROM pg_stat_activity WHERE application_name = $1`, l.name).Scan(&open, &sessions)
		if err != nil {
			return 0, err
		}
		stray := max(0, sessions-int(l.pool.Stat().TotalConns()))
		if acquired == 0 && open == 0 && stray == 0 {
			return 0, nil
		}
		select {
		case <-ctx.Done():
			return acquired + max(open, stray), fmt.Errorf("leaked: %d connections not released, %d sessions in a transaction, "+
				"%d sessions that no connection of the pool belongs to", acquired, open, stray)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// balance is what the database holds of one message.
type balance struct {
	parts   map[string]int
	records int
}

func (l *line) balance(t *testing.T, id string) balance {
	t.Helper()
	ctx := t.Context()
	b := balance{parts: map[string]int{}}
	rows, err := l.direct.Query(ctx, `SELECT part FROM effects WHERE message_id = $1`, id)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var part string
		require.NoError(t, rows.Scan(&part))
		b.parts[part]++
	}
	require.NoError(t, rows.Err())
	records := l.direct.QueryRow(ctx, `SELECT count(*) FROM txidem_messages WHERE message_id = $1`, id)
	require.NoError(t, records.Scan(&b.records))
	return b
}
