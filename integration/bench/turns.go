package main

import (
	"net"
	"sync/atomic"
)

// turns counts round trips on the wire: how often a client sends after it has received. One that waits for an answer
// before it sends again makes a turn for each wait, whatever the number of messages or packets in either direction.
type turns struct{ n atomic.Int64 }

// watch counts the turns of a connection.
func (t *turns) watch(conn net.Conn) net.Conn { return &watchedConn{Conn: conn, turns: t} }

type watchedConn struct {
	net.Conn
	turns    *turns
	received atomic.Bool
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.received.Store(true)
	}
	return n, err
}

func (c *watchedConn) Write(b []byte) (int, error) {
	if c.received.Swap(false) {
		c.turns.n.Add(1)
	}
	return c.Conn.Write(b)
}
