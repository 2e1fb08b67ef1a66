package worker

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/examples/payments/payment"
	"github.com/txidem/txidem-go/txidem"
)

// Mode says which handler a worker runs.
type Mode string

// The modes, which are also parts of the names of streams and schemas.
const (
	Plain         Mode = "plain"
	SeenSet       Mode = "seen"
	Transactional Mode = "tx"
)

// Modes returns all modes, from the weakest to the strongest.
func Modes() []Mode { return []Mode{Plain, SeenSet, Transactional} }

// Title names the mode for people.
func (m Mode) Title() string {
	switch m {
	case Plain:
		return "no dedupe"
	case SeenSet:
		return "seen-set (WrapSeen)"
	case Transactional:
		return "transaction (Wrap)"
	}
	return string(m)
}

// handler returns the handler of the mode.
func (m Mode) handler(pool *pgxpool.Pool, guard *txidem.Guard) (payment.Handler, error) {
	switch m {
	case Plain:
		return payment.Plain(pool), nil
	case SeenSet:
		return payment.SeenSet(pool, guard), nil
	case Transactional:
		return payment.Transactional(guard), nil
	}
	return nil, fmt.Errorf("worker: there is no mode %q", string(m))
}
