package integration

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// turns is a proxy in front of the server that counts round trips: how often bytes of the client follow bytes of the
// server. A client that waits for an answer before it sends again makes one turn for each wait, whatever the number of
// messages or packets in either direction.
type turns struct {
	mu         sync.Mutex
	n          int
	lastServer bool
}

// through makes a world's pool connect by way of the proxy.
func (c *turns) through(t *testing.T) func(*pgxpool.Config) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var sessions sync.WaitGroup
	return func(cfg *pgxpool.Config) {
		server := net.JoinHostPort(cfg.ConnConfig.Host, strconv.Itoa(int(cfg.ConnConfig.Port)))
		sessions.Go(func() { c.accept(listener, server, &sessions) })
		t.Cleanup(sessions.Wait)
		t.Cleanup(func() { _ = listener.Close() })
		addr := listener.Addr().(*net.TCPAddr)
		cfg.ConnConfig.Host, cfg.ConnConfig.Port = addr.IP.String(), uint16(addr.Port)
		cfg.ConnConfig.Fallbacks, cfg.ConnConfig.TLSConfig = nil, nil
		cfg.MaxConns = 1
		// a ping would be a round trip of the pool's
		cfg.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	}
}

func (c *turns) accept(listener net.Listener, server string, sessions *sync.WaitGroup) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		upstream, err := net.Dial("tcp", server)
		if err != nil {
			_ = client.Close()
			continue
		}
		sessions.Go(func() { c.copy(upstream, client, false) })
		sessions.Go(func() { c.copy(client, upstream, true) })
	}
}

// copy forwards one direction until it ends, and then ends the other.
func (c *turns) copy(dst, src net.Conn, server bool) {
	defer dst.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			c.see(server)
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *turns) see(server bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !server && c.lastServer {
		c.n++
	}
	c.lastServer = server
}

// during returns the round trips that fn makes.
func (c *turns) during(fn func()) int {
	c.mu.Lock()
	before := c.n
	c.mu.Unlock()
	fn()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n - before
}
