package txidem_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
)

// step is one delivery and the decision it must get. Its tags are the manifest's names.
type step struct {
	ID           string `json:"meta_id"`
	ForgetBefore bool   `json:"forget_before"`
	Effect       string `json:"expect_effect"` // "run" or "skip"
	Outcome      string `json:"outcome"`       // of a handler that runs: "ok" or "throw"
}

var (
	run    = step{ID: "a", Effect: "run"}
	fail   = step{ID: "a", Effect: "run", Outcome: "throw"}
	skip   = step{ID: "a", Effect: "skip"}
	forget = step{ID: "a", Effect: "run", ForgetBefore: true}
)

func (s step) of(id string) step {
	s.ID = id
	return s
}

// The six decisions of the wire contract in this project's own words, over a store without a server.
func TestDecisions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps []step
		calls int
	}{
		"the second delivery of a message is skipped": {[]step{run, skip}, 1},
		"and so is every later one":                   {[]step{run, skip, skip, skip, skip}, 1},
		"other ids are other messages": {
			[]step{run, run.of("b"), run.of("A"), skip, skip.of("b"), skip.of("A")}, 3,
		},
		"a failed attempt leaves the id free": {[]step{fail, fail, run, skip}, 3},
		"a message without an id always runs": {[]step{run.of(""), fail.of(""), run.of(""), run.of("")}, 4},
		"a forgotten message runs once more":  {[]step{run, skip, forget, skip}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.calls, replay(t, c.steps))
		})
	}
}

// The manifest's expected_effects counts the calls of the handler, those that throw included: its sequence
// "throw-leaves-id-unmarked" has two that throw, one that succeeds, and the number 3.
func TestConformanceSequences(t *testing.T) {
	t.Parallel()
	var manifest struct {
		Idempotency struct {
			Sequences struct {
				Cases []struct {
					Name            string
					Deliveries      []step
					ExpectedEffects int `json:"expected_effects"`
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(readManifest(t), &manifest))
	cases := manifest.Idempotency.Sequences.Cases
	require.Len(t, cases, 6)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.ExpectedEffects, replay(t, c.Deliveries))
		})
	}
}

// readManifest reads the shared conformance data. It skips the test when there is none, unless its folder was asked for
// by name.
func readManifest(t *testing.T) []byte {
	t.Helper()
	dir, named := os.LookupEnv("TXIDEM_CONFORMANCE")
	if !named {
		dir = filepath.Join("..", "..", "shared", "conformance")
	}
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if errors.Is(err, fs.ErrNotExist) && !named {
		t.Skipf("the shared conformance data is missing: %v; put it there, or name its folder in TXIDEM_CONFORMANCE", err)
	}
	require.NoError(t, err)
	return text
}

// replay delivers the steps to a handler wrapped over a memory store, asserts each decision, and returns how often the
// handler was called.
func replay(t *testing.T, steps []step) (calls int) {
	t.Helper()
	store, err := txidem.NewMemoryStore(nil)
	require.NoError(t, err)
	thrown := errors.New("thrown")
	deliver := txidem.WrapSeen(store, func(s step) string { return s.ID }, func(_ context.Context, s step) error {
		calls++
		if s.Outcome == "throw" {
			return thrown
		}
		return nil
	})
	for i, s := range steps {
		if s.ForgetBefore {
			require.NoError(t, store.Forget(t.Context(), s.ID))
		}
		before := calls
		err := deliver(t.Context(), s)
		require.Equal(t, s.Effect == "run", calls > before, "delivery %d: %+v", i, s)
		if s.Outcome == "throw" {
			require.Equal(t, thrown, err, "delivery %d is to be redelivered", i)
		} else {
			require.NoError(t, err, "delivery %d is acked", i)
		}
	}
	return calls
}
