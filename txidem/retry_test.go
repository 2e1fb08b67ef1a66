package txidem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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
		"handler's own":       {errors.New("card declined"), true, time.Second},
		"permanent":           {fmt.Errorf("wrapped: %w", Permanent(errors.New("card declined"))), false, 0},
		"two at a time":       {fmt.Errorf("%w: x", ErrTxBusy), false, 0},
		"misuse":              {fmt.Errorf("%w: x", errQueuedLate), false, 0},
		"in flight":           {&InFlightError{Wait: 5 * time.Second}, true, 5 * time.Second},
		"leased":              {&InFlightError{}, true, time.Second},
		"unknown commit":      {fmt.Errorf("%w: %w", ErrCommitUnknown, io.ErrUnexpectedEOF), true, time.Second},
		"no table":            {fmt.Errorf("%w: x", ErrNoTable), true, time.Second},
		"shutting down":       {&pgconn.PgError{Code: "57P01"}, true, time.Second},
		"too many clients":    {fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: "53300"}), true, time.Second},
		"serialization":       {&pgconn.PgError{Code: "40001"}, true, time.Second},
		"hid a failure":       {fmt.Errorf("%w: x", ErrTxAborted), true, time.Second},
		"context ended":       {context.DeadlineExceeded, true, time.Second},
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

// A redelivery never comes at once, and comes later each time, but for a copy in flight.
func TestSettle(t *testing.T) {
	t.Parallel()
	own, inFlight := errors.New("card declined"), error(&InFlightError{Wait: 5 * time.Second})
	require.Equal(t, Settlement{Action: Ack}, Settle(nil, 7))
	require.Equal(t, Settlement{Action: Park}, Settle(Permanent(own), 1))
	require.Equal(t, Settlement{Action: Park}, Settle(&IDError{}, 0))
	for _, tc := range []struct {
		err        error
		deliveries int
		most       time.Duration
	}{
		{own, 0, time.Second},
		{own, 1, time.Second},
		{own, 2, 2 * time.Second},
		{own, 5, 16 * time.Second},
		{own, 7, time.Minute},
		{own, math.MaxInt, time.Minute},
		{own, -1, time.Second},
		{inFlight, 1, 5 * time.Second},
		{inFlight, 100, 5 * time.Second},
	} {
		for range 100 {
			s := Settle(tc.err, tc.deliveries)
			require.Equal(t, Redeliver, s.Action)
			require.Equal(t, errors.Is(tc.err, ErrInFlight), s.InFlight)
			require.LessOrEqual(t, s.After, tc.most, "%v, %d", tc.err, tc.deliveries)
			require.GreaterOrEqual(t, s.After, tc.most/2, "%v, %d", tc.err, tc.deliveries)
		}
	}
}

func TestPermanent(t *testing.T) {
	t.Parallel()
	require.NoError(t, Permanent(nil))
	err := Permanent(io.EOF)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, io.EOF.Error(), err.Error())
}

// A broker that does what Settle says delivers a message that fails for a second a handful of times.
func TestNoHotLoop(t *testing.T) {
	t.Parallel()
	deliveries := 0
	for clock := time.Duration(0); clock < time.Second; deliveries++ {
		clock += Settle(errors.New("fails for a second"), deliveries+1).After
	}
	require.LessOrEqual(t, deliveries, 3)
}
