package txidem

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/internal/sqlgen"
)

// shipment is a pipeline that has been sent.
type shipment struct {
	t    transaction
	b    *pgx.Batch
	br   pgx.BatchResults
	form form
}

// send puts everything on the wire.
func (d *delivery) send(ctx context.Context, conn *pgxpool.Conn) shipment {
	q := &d.queue
	b := newBatch()
	if q.form != bare {
		beginIn(b, d.g.cfg.TxOptions)
	}
	if d.message.hasID {
		b.Queue(d.g.sql.Pipeline, d.message.id, d.g.consumer, d.g.wait, d.g.idle)
	} else {
		b.Queue(d.g.sql.Mark, d.g.idle)
	}
	b.QueuedQueries = append(b.QueuedQueries, q.queries...)
	if q.form == block {
		b.Queue(sqlgen.Guard)
		b.Queue(sqlgen.Commit)
	}
	br := conn.SendBatch(ctx, b)
	// In the bare form there is no transaction to end: one statement's failure, or the Sync, has ended it.
	t := transaction{conn: conn, tx: br.Tx(), over: q.form == bare, doubtful: q.doubtful}
	return shipment{b: b, br: br, form: q.form, t: t}
}

// claim reads the results up to that of the claim.
func (s *shipment) claim() error {
	if s.form != bare {
		if _, err := s.br.Exec(); err != nil {
			return err
		}
	}
	_, err := s.br.Exec()
	return err
}

// close reads what is left. The statements of a failed claim are in order: pgx would drop all of them from its cache,
// those of the batch at the time of Close, and prepare them anew on the next delivery.
func (s *shipment) close(keepStatements bool) error {
	if keepStatements {
		s.b.QueuedQueries = nil
	}
	return s.br.Close()
}
