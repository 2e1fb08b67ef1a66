package faults

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// wireFault is what happens to the next COMMIT that a client sends.
type wireFault int

const (
	noFault     wireFault = iota
	loseRequest           // the connection breaks before the server has it
	loseReply             // the server commits, and the connection breaks before it can say so
)

// wire stands on the client's side of the connections of a pool and breaks them. It is safe for concurrent use.
type wire struct {
	mu    sync.Mutex
	conns map[*wireConn]bool
	armed wireFault
	fired map[wireFault]int
}

func newWire() *wire { return &wire{conns: map[*wireConn]bool{}, fired: map[wireFault]int{}} }

// through makes a pool connect by way of the wire, without TLS, so that the COMMIT can be read.
func (w *wire) through(c *pgxpool.Config) {
	dial := c.ConnConfig.DialFunc
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return w.add(conn), nil
	}
	c.ConnConfig.TLSConfig, c.ConnConfig.Fallbacks = nil, nil
}

func (w *wire) add(conn net.Conn) *wireConn {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &wireConn{Conn: conn, wire: w}
	w.conns[c] = true
	return c
}

func (w *wire) remove(c *wireConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}

// arm lets a fault happen to the next COMMIT, whoever sends it.
func (w *wire) arm(f wireFault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = f
}

// draw returns what is to happen to a message of a client.
func (w *wire) draw(message []byte) wireFault {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.armed
	if f == noFault || !isCommit(message) {
		return noFault
	}
	w.armed = noFault
	w.fired[f]++
	return f
}

// isCommit recognises a simple query that commits.
func isCommit(message []byte) bool {
	return len(message) > 0 && message[0] == 'Q' && bytes.Contains(bytes.ToUpper(message), []byte("COMMIT"))
}

// cutOne breaks one connection at random, and reports whether there was one.
func (w *wire) cutOne() bool {
	w.mu.Lock()
	var all []*wireConn
	for c := range w.conns {
		all = append(all, c)
	}
	w.mu.Unlock()
	if len(all) == 0 {
		return false
	}
	all[rand.IntN(len(all))].cut()
	return true
}

// open returns how many connections there are.
func (w *wire) open() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns)
}

// count returns how often a fault has fired.
func (w *wire) count(f wireFault) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fired[f]
}

// wireConn is one connection.
type wireConn struct {
	net.Conn
	wire *wire

	mu      sync.Mutex
	broken  bool
	mute    bool      // the server's next bytes are not delivered, and are its last
	ahead   io.Reader // what awaitEnd has read, nil before it
	closing sync.Once
}

// cut breaks the connection as the network does: both sides see a reset.
func (c *wireConn) cut() {
	c.mu.Lock()
	c.broken = true
	c.mu.Unlock()
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func (c *wireConn) Close() error {
	c.closing.Do(func() { c.wire.remove(c) })
	return c.Conn.Close()
}

func (c *wireConn) Write(message []byte) (int, error) {
	switch c.wire.draw(message) {
	case loseRequest:
		c.cut()
	case loseReply:
		c.mu.Lock()
		c.mute = true
		c.mu.Unlock()
	default:
	}
	n, err := c.Conn.Write(message)
	return n, c.reset(err)
}

// awaitEnd returns when the server's side of the connection is gone, so that it does nothing more. What it has said until
// then is kept for the client to read. It is called while nobody reads.
func (c *wireConn) awaitEnd(limit time.Duration) error {
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	said, err := io.ReadAll(c.Conn)
	c.ahead = bytes.NewReader(said)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}

func (c *wireConn) Read(buf []byte) (int, error) {
	if c.ahead != nil {
		return c.ahead.Read(buf)
	}
	n, err := c.Conn.Read(buf)
	c.mu.Lock()
	mute := c.mute
	c.mu.Unlock()
	if mute && n > 0 {
		c.cut()
		return 0, syscall.ECONNRESET
	}
	return n, c.reset(err)
}

// reset makes the error of a connection that was cut the one that the network would give.
func (c *wireConn) reset(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.broken {
		return syscall.ECONNRESET
	}
	return err
}
