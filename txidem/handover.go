package txidem

import (
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
)

// handover watches the use of a transaction while a handler has it. The handed transaction, the savepoints made from it,
// and the rows and batches they return share one. One statement is in progress at a time, as on the connection below;
// what comes in between is refused here, so that the refusal is known and the delivery fails whatever the handler makes of
// it. Otherwise one goroutine's statement could be refused by the connection and lost, and the others' be committed.
type handover struct {
	conn *pgx.Conn

	mu       sync.Mutex
	busy     bool  // a statement was sent and its result is not read to the end
	back     bool  // the handler has returned
	doubtful bool  // something was sent that is not known to leave the transaction alone
	misuse   error // the first thing that the handler must not do
	lost     error // the first error of a statement after which the connection was closed
}

// enter is asked before a statement is sent that has no text to look at, and leaves the transaction alone.
func (s *handover) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begin(s.refuse(""))
}

// enterStatement is asked before a statement is sent.
func (s *handover) enterStatement(sql string, args []any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubtful = s.doubtful || !contained(sql, args)
	return s.begin(s.refuse(sql))
}

// doubt is told when something is given away through which statements can be sent unseen.
func (s *handover) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubtful = true
}

// enterBatch is asked before a batch is sent. An empty statement of it needs no look. Callbacks get rows, which have the
// connection.
func (s *handover) enterBatch(b *pgx.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.refuse("")
	for _, q := range b.QueuedQueries {
		err = firstOf(err, s.refuse(q.SQL))
		s.doubtful = s.doubtful || q.Fn != nil || !contained(q.SQL, q.Arguments)
	}
	return s.begin(err)
}

// begin marks the transaction as busy unless the statement was refused. The caller holds the lock.
func (s *handover) begin(refused error) error {
	if refused == nil {
		s.busy = true
	}
	return refused
}

// refuse says why a statement must not be sent. The caller holds the lock.
func (s *handover) refuse(sql string) error {
	if s.back {
		return fmt.Errorf("%w: the handler that it was handed to has returned", pgx.ErrTxClosed)
	}
	if s.busy {
		return s.blame(fmt.Errorf("%w: a statement was begun before the result of another was closed, "+
			"or by another goroutine", ErrTxBusy))
	}
	if err := s.look(); err != nil {
		return err
	}
	if control := txControl(sql); control != "" {
		return s.blame(fmt.Errorf("%w: %s is refused: return nil to commit, an error to roll back, use tx.Begin for a savepoint",
			ErrTxControl, control))
	}
	return nil
}

// blame keeps the first misuse. The caller holds the lock.
func (s *handover) blame(err error) error {
	if s.misuse == nil {
		s.misuse = err
	}
	return err
}

// refuseEnd is the answer to Commit and Rollback.
func (s *handover) refuseEnd(method string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blame(fmt.Errorf("%w: %s is refused: return nil to commit, an error to roll back", ErrTxControl, method))
}

// leave is told when a statement that entered is done, with its error.
func (s *handover) leave(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	if err != nil && s.lost == nil && s.conn.IsClosed() {
		s.lost = err
	}
}

// doubtScan is told what rows are scanned into: a RowScanner gets pgx's own rows, which have the connection.
func (s *handover) doubtScan(dest []any) {
	for _, d := range dest {
		if _, ok := d.(pgx.RowScanner); ok {
			s.doubt()
		}
	}
}

// look blames the handler when the transaction is over: a statement of it has ended it unseen. The caller holds the lock,
// and no statement is in progress.
func (s *handover) look() error {
	c := s.conn.PgConn()
	if c.IsClosed() || c.IsBusy() || c.TxStatus() != statusIdle {
		return nil
	}
	return s.blame(errEnded)
}

// takeBack ends the handler's use of the transaction: from here on every statement is pgx.ErrTxClosed. A statement that
// is still in progress belongs to a goroutine that nobody waits for, and it could be between two messages: on a connection
// that has gone back to the pool it would be executed outside the transaction, or in somebody else's. So the socket is
// closed under it, which is safe from here.
func (s *handover) takeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back {
		return
	}
	s.back = true
	if !s.busy {
		_ = s.look()
		return
	}
	_ = s.conn.PgConn().Conn().Close()
	_ = s.blame(fmt.Errorf("%w: close rows and batches, and wait for goroutines, before the handler returns", ErrTxBusy))
}

// found returns what was seen. It is called after takeBack.
func (s *handover) found() (misuse, lost error, doubtful bool) { //nolint:revive // an error among others
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.misuse, s.lost, s.doubtful
}
