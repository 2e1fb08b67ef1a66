package txidem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

func TestRetryable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err   error
		retry bool
		after time.Duration
	}{
		"nil":                 {nil, false, 0},
		"bad id":              {&IDError{ID: "\xff", Problem: "is not valid UTF-8"}, false, 0},
		"ended by handler":    {fmt.Errorf("%w: x", ErrTxControl), false, 0},
		"guard in a guard":    {fmt.Errorf("%w: x", ErrAlreadyClaimed), false, 0},
		"handler's own":       {errors.New("card declined"), true, 0},
		"in flight":           {&InFlightError{Wait: 5 * time.Second}, true, 5 * time.Second},
		"leased":              {&InFlightError{}, true, time.Second},
		"unknown commit":      {fmt.Errorf("%w: %w", ErrCommitUnknown, io.ErrUnexpectedEOF), true, time.Second},
		"no table":            {fmt.Errorf("%w: x", ErrNoTable), true, time.Second},
		"shutting down":       {&pgconn.PgError{Code: "57P01"}, true, time.Second},
		"too many clients":    {fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: "53300"}), true, time.Second},
		"serialization":       {&pgconn.PgError{Code: "40001"}, true, 0},
		"hid a failure":       {fmt.Errorf("%w: x", ErrTxAborted), true, 0},
		"context ended":       {context.DeadlineExceeded, true, 0},
		"other driver's code": {driverError("08006"), true, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.retry, Retryable(tc.err))
			require.Equal(t, tc.after, RetryAfter(tc.err))
		})
	}
}

type driverError string

func (o driverError) Error() string    { return "other driver: " + string(o) }
func (o driverError) SQLState() string { return string(o) }
