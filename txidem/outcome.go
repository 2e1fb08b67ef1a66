package txidem

// Outcome is what became of a delivery that ended without an error. The zero value is none of them, so that it cannot be
// taken for one by mistake.
type Outcome int

const (
	// Processed means that the handler ran, and its effect and the record are committed together.
	Processed Outcome = iota + 1

	// Duplicate means that the message was processed before. This delivery did not run the handler, or nothing of what it
	// queued in a pipeline. Ack it.
	Duplicate

	// Unguarded means that the message has no id, so the handler ran and no record was made. A redelivery runs it again.
	Unguarded
)

// String returns "processed", "duplicate", "unguarded", or "none" for anything else.
func (o Outcome) String() string {
	switch o {
	case Processed:
		return "processed"
	case Duplicate:
		return "duplicate"
	case Unguarded:
		return "unguarded"
	default:
		return "none"
	}
}

// outcomeOf keeps the rule that a delivery has an outcome or an error, never both.
func outcomeOf(o Outcome, err error) (Outcome, error) {
	if err != nil {
		return 0, err
	}
	return o, nil
}
