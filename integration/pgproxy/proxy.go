package pgproxy

import (
	"fmt"
	"net"
	"sync"
)

// Proxy listens on a port of its own and forwards to one server. It is safe for concurrent use.
type Proxy struct {
	network  string
	address  string
	listener net.Listener
	running  sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	accepted int
	sessions map[*session]struct{}
	observed observation
}

// Start begins to listen on a free port of 127.0.0.1. network and address are the server's, as for net.Dial.
func Start(network, address string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("pgproxy: listen: %w", err)
	}
	p := &Proxy{network: network, address: address, listener: listener, sessions: map[*session]struct{}{}}
	p.running.Go(p.accept)
	return p, nil
}

// Addr returns where the proxy listens.
func (p *Proxy) Addr() *net.TCPAddr { return p.listener.Addr().(*net.TCPAddr) }

// Observe begins a new observation: from here on, hook is asked about the messages of every connection that sends a
// request. A nil hook ends the observation.
func (p *Proxy) Observe(hook Hook) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observed = observation{hook: hook, conns: map[*session]bool{}}
}

// Release ends every Swallow: the connections concerned are cut on both sides.
func (p *Proxy) Release() {
	for _, s := range p.open() {
		if s.swallowing.Load() {
			s.cut()
		}
	}
}

// Close stops listening, cuts every connection and returns when no goroutine of the proxy is left. A hook that is holding
// a message must return first.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	for _, s := range p.open() {
		s.cut()
	}
	p.running.Wait()
}

// accept takes connections until the listener is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(p.network, p.address)
		if err != nil {
			_ = client.Close()
			continue
		}
		if s := p.add(client, server); s != nil {
			p.running.Go(func() { p.serve(s) })
		}
	}
}

// add registers a new connection, or closes it and returns nil when the proxy is closed.
func (p *Proxy) add(client, server net.Conn) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := newSession(p.accepted, client, server)
	if p.closed {
		s.cut()
		return nil
	}
	p.accepted++
	p.sessions[s] = struct{}{}
	return s
}

// serve forwards one connection to its end.
func (p *Proxy) serve(s *session) {
	s.run(p.ask)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sessions, s)
}

// ask counts a message and has the hook decide about it.
func (p *Proxy) ask(s *session, d Direction, kind byte) Verdict {
	p.mu.Lock()
	m, hook := p.observed.count(s, d, kind)
	p.mu.Unlock()
	if hook == nil {
		return Pass
	}
	return hook(m)
}

func (p *Proxy) open() []*session {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := make([]*session, 0, len(p.sessions))
	for s := range p.sessions {
		open = append(open, s)
	}
	return open
}
