package payment

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/txidem/envelope"
)

// revenue is the account on the other side of every charge.
const revenue = "revenue"

// Charge writes a charge and its two ledger entries, one for each side, through tx.
func Charge(ctx context.Context, tx pgx.Tx, msg envelope.Envelope) error {
	cmd, err := ParseCommand(msg)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		WITH charge AS (
			INSERT INTO charges (message_id, account, amount_cents) VALUES ($1, $2, $3::bigint) RETURNING id
		)
		INSERT INTO ledger (charge_id, account, amount_cents)
			SELECT id, $2, -$3::bigint FROM charge
			UNION ALL
			SELECT id, $4, $3::bigint FROM charge`,
		cmd.MessageID, cmd.Account, cmd.AmountCents, revenue)
	return err
}
