package demo

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/examples/payments/payment"
)

// audit is what the tables say once a stream is drained.
type audit struct {
	charges    int   // rows
	twice      int   // messages that were charged more than once
	lost       int   // messages that were never charged
	unbalanced int   // charges whose ledger entries are not two that add up to zero
	overcents  int64 // what customers paid according to the ledger, less what was ordered
}

func (s *schema) audit(ctx context.Context, plan Plan) (audit, error) {
	var a audit
	perMessage, err := s.chargesPerMessage(ctx)
	if err != nil {
		return a, fmt.Errorf("count the charges: %w", err)
	}
	a.count(plan.Commands, perMessage)
	var paid int64
	if err := s.pool.QueryRow(ctx, ledgerQuery).Scan(&a.unbalanced, &paid); err != nil {
		return a, fmt.Errorf("add up the ledger: %w", err)
	}
	a.overcents = paid - plan.OrderedCents()
	return a, nil
}

// ledgerQuery starts from the charges: an entry without a charge cannot exist, a charge without entries could.
const ledgerQuery = `
	WITH booked AS (
		SELECT count(l.charge_id) AS entries, coalesce(sum(l.amount_cents), 0) AS balance,
		       coalesce(-sum(l.amount_cents) FILTER (WHERE l.account = c.account), 0) AS paid
		FROM charges c LEFT JOIN ledger l ON l.charge_id = c.id
		GROUP BY c.id
	)
	SELECT count(*) FILTER (WHERE entries <> 2 OR balance <> 0), coalesce(sum(paid), 0)::bigint FROM booked`

// chargesPerMessage returns the number of charges of each message that has any.
func (s *schema) chargesPerMessage(ctx context.Context) (map[string]int, error) {
	rows, err := s.pool.Query(ctx, "SELECT message_id, count(*) FROM charges GROUP BY message_id")
	if err != nil {
		return nil, err
	}
	perMessage := map[string]int{}
	var id string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&id, &n}, func() error {
		perMessage[id] = n
		return nil
	})
	return perMessage, err
}

// count compares what was charged with what was ordered.
func (a *audit) count(ordered []payment.Command, perMessage map[string]int) {
	for _, n := range perMessage {
		a.charges += n
		if n > 1 {
			a.twice++
		}
	}
	for _, cmd := range ordered {
		if perMessage[cmd.MessageID] == 0 {
			a.lost++
		}
	}
}
