package pgproxy

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Direction is the way that a message goes.
type Direction int

// The two directions.
const (
	ToServer Direction = iota
	ToClient
)

// String returns an arrow: to the right for the server.
func (d Direction) String() string {
	if d == ToServer {
		return "→"
	}
	return "←"
}

// Message is one message of the protocol, as a hook sees it.
type Message struct {
	Conn      int // the connection's number, in the order in which the proxy accepted them, from 0
	Direction Direction
	Index     int    // how many messages of the observation went in this direction before it
	Type      byte   // the first byte of the message
	Process   uint32 // the process id of the server's backend, 0 when it is not known
}

// String returns the direction, index and type of a message, such as "→ 3 Bind".
func (m Message) String() string {
	return fmt.Sprintf("%v %d %s", m.Direction, m.Index, m.Name())
}

// Name returns the name of the message's type in the protocol's documentation, or the type's character.
func (m Message) Name() string {
	names := backendNames
	if m.Direction == ToServer {
		names = frontendNames
	}
	if name := names[m.Type]; name != "" {
		return name
	}
	return fmt.Sprintf("%q", m.Type)
}

var frontendNames = map[byte]string{
	'B': "Bind", 'C': "Close", 'd': "CopyData", 'c': "CopyDone", 'f': "CopyFail", 'D': "Describe", 'E': "Execute",
	'H': "Flush", 'P': "Parse", 'p': "Password", 'Q': "Query", 'S': "Sync", 'X': "Terminate",
}

var backendNames = map[byte]string{
	'R': "Authentication", 'K': "BackendKeyData", '2': "BindComplete", '3': "CloseComplete", 'C': "CommandComplete",
	'd': "CopyData", 'c': "CopyDone", 'G': "CopyInResponse", 'H': "CopyOutResponse", 'D': "DataRow",
	'I': "EmptyQueryResponse", 'E': "ErrorResponse", 'n': "NoData", 'N': "NoticeResponse", 'A': "NotificationResponse",
	't': "ParameterDescription", 'S': "ParameterStatus", '1': "ParseComplete", 's': "PortalSuspended",
	'Z': "ReadyForQuery", 'T': "RowDescription",
}

// The types that the proxy itself looks at.
const (
	backendKeyData = 'K'
	readyForQuery  = 'Z'
	terminate      = 'X'
)

const (
	headerSize = 5       // type and length
	maxLength  = 1 << 30 // PostgreSQL's own limit: more than this is not the protocol
)

// readMessage reads one message: its bytes, the type being the first.
func readMessage(r io.Reader) ([]byte, error) {
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, err
	}
	return readRest(r, header, header[1:])
}

// readStartup reads a message of the start of a connection, which has no type. Its code, or protocol version, follows the
// length.
func readStartup(r io.Reader) (raw []byte, code uint32, err error) {
	header := make([]byte, 8)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, 0, err
	}
	raw, err = readRest(r, header, header)
	return raw, binary.BigEndian.Uint32(header[4:]), err
}

// readRest reads what the length in a header announces. The length counts itself and all that follows it.
func readRest(r io.Reader, header, length []byte) ([]byte, error) {
	n := int64(binary.BigEndian.Uint32(length))
	rest := n - int64(len(length))
	if rest < 0 || n > maxLength {
		return nil, fmt.Errorf("pgproxy: a message of length %d", n)
	}
	raw := make([]byte, int64(len(header))+rest)
	copy(raw, header)
	_, err := io.ReadFull(r, raw[len(header):])
	return raw, err
}
