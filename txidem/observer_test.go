package txidem

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSlogObserver(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		delivery DeliveryEvent
		level    string
	}{
		"processed":      {DeliveryEvent{Outcome: Processed}, "DEBUG"},
		"duplicate":      {DeliveryEvent{Outcome: Duplicate}, "DEBUG"},
		"unguarded":      {DeliveryEvent{Outcome: Unguarded}, "WARN"},
		"not remembered": {DeliveryEvent{Outcome: Processed, RememberErr: errors.New("away")}, "WARN"},
		"claimed":        {DeliveryEvent{Outcome: Claimed}, "DEBUG"},
		"in flight":      {DeliveryEvent{Err: &InFlightError{}}, "INFO"},
		"failed":         {DeliveryEvent{Err: errors.New("no")}, "ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
			d := tc.delivery
			d.Consumer, d.ID, d.Attempts, d.Total = "ledger", "m-1", 2, time.Second
			SlogObserver(log)(context.Background(), d)

			var line map[string]any
			require.NoError(t, json.Unmarshal(out.Bytes(), &line))
			require.Equal(t, tc.level, line["level"])
			require.Equal(t, "ledger", line["consumer"])
			require.Equal(t, "m-1", line["message_id"])
			require.Equal(t, d.Outcome.String(), line["outcome"])
			require.EqualValues(t, 2, line["attempts"])
			require.Equal(t, d.Err != nil, line["error"] != nil)
			require.Equal(t, d.RememberErr != nil, line["remember_error"] != nil)
		})
	}
}

func TestOutcomeZeroValueIsNone(t *testing.T) {
	t.Parallel()
	var zero Outcome
	require.Equal(t, "none", zero.String())
	for _, o := range []Outcome{Processed, Duplicate, Unguarded, Claimed} {
		require.NotEqual(t, zero, o)
		require.NotEqual(t, "none", o.String())
	}
}
