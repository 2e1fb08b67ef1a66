package handlertx

import (
	"errors"
	"fmt"
)

// ErrMisuse is what all mistakes of the program have in common.
var ErrMisuse = errors.New("txidem: misuse")

// misuse is an error that is ErrMisuse, without its text.
type misuse struct{ text string }

// Misuse makes an error that is [ErrMisuse].
func Misuse(text string) error { return &misuse{text: text} }

func (m *misuse) Error() string { return m.text }

// Is makes errors.Is(err, ErrMisuse) true.
func (m *misuse) Is(target error) bool { return target == ErrMisuse }

// The mistakes that are found in the use of a transaction.
var (
	ErrTxControl = Misuse("txidem: the handler must not end the transaction")
	ErrTxBusy    = Misuse("txidem: the transaction is still in use")

	// ErrEnded is an ErrTxControl: there is no transaction any more.
	ErrEnded = fmt.Errorf("%w: it was ended by a statement of the handler", ErrTxControl)

	// ErrLeftOpen is an ErrTxBusy: the handler has returned.
	ErrLeftOpen = fmt.Errorf("%w: close rows and batches, and wait for goroutines, before the handler returns", ErrTxBusy)
)
