package demo

import (
	"fmt"

	"github.com/txidem/txidem-go/examples/payments/internal/worker"
)

// Result is one row of the table: what a handler did with the stream.
type Result struct {
	Mode        worker.Mode // says which handler
	Messages    int         // different ones
	Deliveries  int         // made by the broker: the copies and redeliveries count
	Kills       int         // workers killed
	AfterCommit int         // of these, between COMMIT and ack, at least (see shift.replace)
	Charges     int         // rows of the table
	Twice       int         // messages charged more than once
	Lost        int         // messages never charged
	Unbalanced  int         // charges whose ledger entries are not two that add up to zero
	Overcharged int64       // in cents: what customers paid, less what was ordered
}

// Verdict returns nil when the transactional handler charged every message once, and otherwise an error that says what
// it did instead.
func Verdict(results []Result) error {
	for _, r := range results {
		if r.Mode == worker.Transactional {
			return r.exactlyOnce()
		}
	}
	return fmt.Errorf("the transactional handler did not run")
}

func (r Result) exactlyOnce() error {
	switch {
	case r.Twice != 0:
		return fmt.Errorf("the transactional handler charged %d messages more than once", r.Twice)
	case r.Lost != 0:
		return fmt.Errorf("the transactional handler lost %d messages", r.Lost)
	case r.Charges != r.Messages:
		return fmt.Errorf("the transactional handler made %d charges for %d messages", r.Charges, r.Messages)
	case r.Unbalanced != 0:
		return fmt.Errorf("the ledger of the transactional handler does not balance: %d charges are off", r.Unbalanced)
	case r.Overcharged != 0:
		return fmt.Errorf("the ledger of the transactional handler is off by %s from what was ordered", cents(r.Overcharged))
	}
	return nil
}

// cents renders an amount, with a dot before its last two digits.
func cents(n int64) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s%d.%02d", sign, n/100, n%100)
}
