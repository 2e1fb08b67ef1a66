package pgproxy

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// The codes that a connection may begin with in place of a protocol version.
const (
	cancelRequest = 80877102
	sslRequest    = 80877103
	gssRequest    = 80877104
)

// session is one connection through the proxy: a socket to the client and one to the server. Each direction is forwarded
// by a goroutine of its own. A side that has ended is ended on the other side when what came before has been forwarded,
// so that a message which a hook holds still reaches the server after the client has gone.
type session struct {
	number  int
	sides   [2]net.Conn      // by the direction that ends there: [ToServer] is the server's
	from    [2]*bufio.Reader // by the direction that begins there
	process atomic.Uint32
	ready   atomic.Bool // the server has been ready for a query once

	swallowing atomic.Bool
	gone       chan struct{} // closed by cut
	once       sync.Once
}

func newSession(number int, client, server net.Conn) *session {
	s := &session{number: number, gone: make(chan struct{})}
	s.sides[ToServer], s.sides[ToClient] = server, client
	s.from[ToServer], s.from[ToClient] = bufio.NewReader(client), bufio.NewReader(server)
	return s
}

// cut closes both sides.
func (s *session) cut() {
	s.once.Do(func() {
		close(s.gone)
		_ = s.sides[ToServer].Close()
		_ = s.sides[ToClient].Close()
	})
}

// run forwards until both directions have ended.
func (s *session) run(ask func(*session, Direction, byte) Verdict) {
	defer s.cut()
	ordinary, err := s.startup()
	if err != nil {
		return
	}
	var pumps sync.WaitGroup
	for _, d := range []Direction{ToServer, ToClient} {
		pumps.Go(func() {
			if ordinary {
				s.pump(d, ask)
			} else {
				_, _ = io.Copy(s.sides[d], s.from[d])
			}
			s.end(d)
		})
	}
	pumps.Wait()
}

// startup forwards the first message. It reports whether the connection goes on with messages that have a type: a cancel
// request does not.
func (s *session) startup() (ordinary bool, err error) {
	for {
		raw, code, err := readStartup(s.from[ToServer])
		if err != nil {
			return false, err
		}
		if code == sslRequest || code == gssRequest {
			if _, err := s.sides[ToClient].Write([]byte{'N'}); err != nil {
				return false, err
			}
			continue
		}
		_, err = s.sides[ToServer].Write(raw)
		return code != cancelRequest, err
	}
}

// pump forwards one direction, message by message, until its sender ends it or the session is cut.
func (s *session) pump(d Direction, ask func(*session, Direction, byte) Verdict) {
	broken := false // the receiver has gone: what is still sent is read and lost
	for {
		raw, err := readMessage(s.from[d])
		if err != nil {
			return
		}
		verdict := Pass
		if s.counts(d, raw) && !s.swallowing.Load() {
			verdict = ask(s, d, raw[0])
		}
		if part := s.judge(verdict, raw); len(part) > 0 && !broken {
			_, err := s.sides[d].Write(part)
			broken = err != nil
		}
		if verdict == Drop || verdict == Cut || verdict == CutHalfway {
			s.cut()
			return
		}
	}
}

// counts reports whether a message belongs to the exchange after the start of the connection.
func (s *session) counts(d Direction, raw []byte) bool {
	if s.ready.Load() {
		return true
	}
	if d == ToClient && raw[0] == backendKeyData && len(raw) >= headerSize+4 {
		s.process.Store(binary.BigEndian.Uint32(raw[headerSize:]))
	}
	if d == ToClient && raw[0] == readyForQuery {
		s.ready.Store(true)
	}
	return false
}

// judge returns the bytes of a message that are forwarded.
func (s *session) judge(v Verdict, raw []byte) []byte {
	if v == Swallow {
		s.swallowing.Store(true)
	}
	switch {
	case s.swallowing.Load(), v == Drop:
		return nil
	case v == CutHalfway:
		return raw[:len(raw)/2]
	default:
		return raw
	}
}

// end tells the receiver of a direction that its sender has ended. A session that swallows tells nobody.
func (s *session) end(d Direction) {
	if s.swallowing.Load() {
		<-s.gone
		return
	}
	if half, ok := s.sides[d].(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
