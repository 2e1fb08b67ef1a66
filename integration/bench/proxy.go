package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// proxy forwards connections to the server and delays every byte by the same time, in both directions. It does not limit
// the throughput: bytes wait in a queue, not their reader.
//
// The delay is the same for all bytes, so one queue in order of arrival is in order of departure too, and one goroutine
// with one alarm serves all connections. toxiproxy was looked at: its latency is in whole milliseconds for a direction,
// waited for with Go's timers, which add up to another one, and for one packet after the other.
type proxy struct {
	dial     func(ctx context.Context) (net.Conn, error)
	delay    time.Duration // for each direction
	listener net.Listener
	queue    chan parcel
	readers  sync.WaitGroup
	sender   sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// parcel is some bytes on their way. Without bytes it is the sender's end of the connection.
type parcel struct {
	to    net.Conn
	bytes []byte
	due   time.Time
}

// queueLength is far more than what is under way in any cell.
const queueLength = 1 << 14

// startProxy adds roundTrip to each round trip, half of it in each direction.
func startProxy(dial func(ctx context.Context) (net.Conn, error), roundTrip time.Duration) (*proxy, error) {
	a, err := newAlarm()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	p := &proxy{dial: dial, delay: roundTrip / 2, listener: listener, queue: make(chan parcel, queueLength)}
	p.readers.Go(p.accept)
	p.sender.Go(func() { p.send(a) })
	return p, nil
}

// connect is a dialer of the proxy.
func (p *proxy) connect(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", p.listener.Addr().String())
}

func (p *proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := p.dial(context.Background())
		if err != nil {
			near.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, near, far)
		p.mu.Unlock()
		p.readers.Go(func() { p.read(near, far) })
		p.readers.Go(func() { p.read(far, near) })
	}
}

// read queues what comes from one side.
func (p *proxy) read(from, to net.Conn) {
	for {
		buf := make([]byte, 16<<10)
		n, err := from.Read(buf)
		due := time.Now().Add(p.delay)
		if n > 0 {
			p.queue <- parcel{to, buf[:n], due}
		}
		if err != nil {
			p.queue <- parcel{to, nil, due}
			return
		}
	}
}

// send delivers what is queued when it is due.
func (p *proxy) send(a *alarm) {
	defer a.close() //nolint:errcheck // nothing depends on it any more
	for item := range p.queue {
		err := a.wait(time.Until(item.due))
		if err == nil && item.bytes != nil {
			_, err = item.to.Write(item.bytes)
		}
		if err != nil || item.bytes == nil {
			item.to.Close()
		}
	}
}

// close cuts all connections and returns when no goroutine is left.
func (p *proxy) close() {
	p.listener.Close() //nolint:errcheck // it ends accept, or accept has ended
	p.mu.Lock()
	for _, conn := range p.conns {
		conn.Close()
	}
	p.mu.Unlock()
	p.readers.Wait()
	close(p.queue)
	p.sender.Wait()
}
