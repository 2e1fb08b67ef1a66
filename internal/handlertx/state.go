package handlertx

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/internal/sqltext"
)

// The transaction states that the server reports with every answer.
const (
	StatusIdle    = 'I' // no transaction
	StatusAborted = 'E' // a statement failed, everything until ROLLBACK is refused
)

// Use is what a handler has made of its transaction.
type Use struct {
	Misuse   error // the first thing that it must not do
	Lost     error // the first error of a statement after which the connection was closed
	Doubtful bool  // something was sent that is not known to leave the transaction alone
}

// state watches the use of a transaction while a handler has it. The transaction, the savepoints made from it, and the rows
// and batches they return share one. One statement is in progress at a time, as on the connection below; what comes in
// between is refused here, so that the refusal is known and the delivery fails whatever the handler makes of it. Otherwise
// one goroutine's statement could be refused by the connection and lost, and the others' be committed.
type state struct {
	conn *pgx.Conn

	mu      sync.Mutex
	busy    bool // a statement was sent and its result is not read to the end
	revoked bool // the handler has returned
	use     Use
}

// enter is asked before a statement is sent that has no text to look at, and leaves the transaction alone.
func (s *state) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begin(s.refuse(""))
}

// enterStatement is asked before a statement is sent.
func (s *state) enterStatement(sql string, args []any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.use.Doubtful = s.use.Doubtful || !sqltext.Contained(sql, args)
	return s.begin(s.refuse(sql))
}

// enterBatch is asked before a batch is sent. An empty statement of it needs no look. Callbacks get rows, which have the
// connection.
func (s *state) enterBatch(b *pgx.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.refuse("")
	for _, q := range b.QueuedQueries {
		err = cmp.Or(err, s.refuse(q.SQL))
		s.use.Doubtful = s.use.Doubtful || q.Fn != nil || !sqltext.Contained(q.SQL, q.Arguments)
	}
	return s.begin(err)
}

// begin marks the transaction as busy unless the statement was refused. The caller holds the lock.
func (s *state) begin(refused error) error {
	if refused == nil {
		s.busy = true
	}
	return refused
}

// leave is told when a statement that entered is done, with its error.
func (s *state) leave(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	if err != nil && s.use.Lost == nil && s.conn.IsClosed() {
		s.use.Lost = err
	}
}

// doubt is told when something is given away through which statements can be sent unseen.
func (s *state) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.use.Doubtful = true
}

// doubtScan is told what rows are scanned into: a RowScanner gets pgx's own rows, which have the connection.
func (s *state) doubtScan(dest []any) {
	for _, d := range dest {
		if _, ok := d.(pgx.RowScanner); ok {
			s.doubt()
		}
	}
}

// refuse says why a statement must not be sent. The caller holds the lock.
func (s *state) refuse(sql string) error {
	if s.revoked {
		return fmt.Errorf("%w: the handler that it was handed to has returned", pgx.ErrTxClosed)
	}
	if s.busy {
		return s.blame(fmt.Errorf("%w: a statement was begun before the result of another was closed, "+
			"or by another goroutine", ErrTxBusy))
	}
	if err := s.blameEnd(); err != nil {
		return err
	}
	if control := sqltext.Control(sql); control != "" {
		return s.blame(fmt.Errorf("%w: %s is refused: return nil to commit, an error to roll back, use tx.Begin for a savepoint",
			ErrTxControl, control))
	}
	return nil
}

// refuseEnd is the answer to Commit and Rollback.
func (s *state) refuseEnd(method string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blame(fmt.Errorf("%w: %s is refused: return nil to commit, an error to roll back", ErrTxControl, method))
}

// blame keeps the first misuse. The caller holds the lock.
func (s *state) blame(err error) error {
	s.use.Misuse = cmp.Or(s.use.Misuse, err)
	return err
}

// blameEnd blames the handler when the transaction is over: a statement of it has ended it unseen. The caller holds the
// lock, and no statement is in progress.
func (s *state) blameEnd() error {
	c := s.conn.PgConn()
	if c.IsClosed() || c.IsBusy() || c.TxStatus() != StatusIdle {
		return nil
	}
	return s.blame(ErrEnded)
}

// revoke ends the handler's use. A statement that is still in progress belongs to a goroutine that nobody waits for, and it
// could be between two messages: on a connection that has gone back to the pool it would be executed outside the
// transaction, or in somebody else's. So the socket is closed under it, which is safe from here.
func (s *state) revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revoked {
		return
	}
	s.revoked = true
	if !s.busy {
		_ = s.blameEnd()
		return
	}
	_ = s.conn.PgConn().Conn().Close()
	_ = s.blame(ErrLeftOpen)
}

func (s *state) seen() Use {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.use
}
