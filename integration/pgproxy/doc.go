// Package pgproxy is a proxy in front of a PostgreSQL server that sees every message of the protocol, and can break the
// connection at any one of them.
//
//	proxy, err := pgproxy.Start("tcp", "127.0.0.1:5432")
//	defer proxy.Close()
//	proxy.Observe(func(m pgproxy.Message) pgproxy.Verdict {
//		if m.Direction == pgproxy.ToServer && m.Index == 3 {
//			return pgproxy.Cut
//		}
//		return pgproxy.Pass
//	})
//
// Messages are counted from Observe on, on every connection that sends a request after it, and for each direction by
// themselves: how the two directions interleave is up to the network, but the order within each is not, as long as one
// connection is used at a time. The start of a connection (start-up, authentication, and everything else until the server
// is first ready for a query) and its end (Terminate, which clients send whenever they get round to it) pass unseen, as do
// cancel requests. TLS is declined: use sslmode=disable.
package pgproxy
