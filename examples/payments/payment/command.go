package payment

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/txidem/txidem-go/txidem"
	"github.com/txidem/txidem-go/txidem/envelope"
)

// Job is the job of the messages that command a charge, and Queue the logical queue they are sent to.
const (
	Job   = "urn:babel:payments:charge"
	Queue = "payments"
)

// ErrBadCommand says that a message does not command a charge. Every delivery of it fails in the same way: it is permanent.
var ErrBadCommand = txidem.Permanent(errors.New("payment: not a charge command"))

// Command orders one charge.
type Command struct {
	MessageID   string `json:"-"`            // travels as meta.id
	Account     string `json:"account"`      // who pays
	AmountCents int64  `json:"amount_cents"` // how much
}

// ParseCommand reads the command that msg carries. Its error is ErrBadCommand.
func ParseCommand(msg envelope.Envelope) (Command, error) {
	if msg.Job != Job {
		return Command{}, fmt.Errorf("%w: its job is %q", ErrBadCommand, msg.Job)
	}
	cmd := Command{MessageID: msg.ID()}
	if err := json.Unmarshal(msg.Data, &cmd); err != nil {
		return Command{}, fmt.Errorf("%w: %w", ErrBadCommand, err)
	}
	if cmd.Account == "" || cmd.AmountCents <= 0 {
		return Command{}, fmt.Errorf("%w: it needs an account and a positive amount_cents", ErrBadCommand)
	}
	return cmd, nil
}

// Encode returns the canonical envelope of the command. A producer that sends a message again, because it does not know
// whether the first try arrived, sends the same bytes.
func (c Command) Encode(traceID string, created time.Time) ([]byte, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return envelope.Encode(envelope.Envelope{
		Job:     Job,
		TraceID: traceID,
		Data:    data,
		Meta: envelope.Meta{
			ID:            c.MessageID,
			Queue:         Queue,
			Lang:          "go",
			SchemaVersion: envelope.SchemaVersion,
			CreatedAt:     created.UnixMilli(),
		},
	})
}
