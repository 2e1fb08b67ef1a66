package pgproxy

// Verdict is what a hook decides about a message.
type Verdict int

const (
	// Pass forwards the message.
	Pass Verdict = iota

	// Drop cuts the connection on both sides and does not forward the message.
	Drop

	// Cut forwards the message, then cuts the connection on both sides.
	Cut

	// CutHalfway forwards the first half of the message's bytes, then cuts the connection on both sides.
	CutHalfway

	// Swallow forwards neither the message nor anything after it, in both directions, and keeps both sides open, as a
	// network does that lost its route. It ends with Proxy.Release.
	Swallow
)

// Hook is called for every message of an observation, before it is forwarded, and decides about it. The message, and
// those behind it in the same direction, wait until it returns; the other direction goes on. It may be called by two
// goroutines at once, one for each direction.
type Hook func(Message) Verdict

// observation counts the messages since Proxy.Observe.
type observation struct {
	hook  Hook
	conns map[*session]bool // the connections that have sent a request
	sent  [2]int            // messages counted, by direction
}

// count numbers a message of s, and returns the hook to ask, or nil when the message is not observed. The caller holds
// the proxy's lock.
func (o *observation) count(s *session, d Direction, kind byte) (Message, Hook) {
	if o.hook == nil || d == ToServer && kind == terminate {
		return Message{}, nil
	}
	if d == ToServer {
		o.conns[s] = true
	}
	if !o.conns[s] {
		return Message{}, nil
	}
	m := Message{Conn: s.number, Direction: d, Index: o.sent[d], Type: kind, Process: s.process.Load()}
	o.sent[d]++
	return m, o.hook
}
