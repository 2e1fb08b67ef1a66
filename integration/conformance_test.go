package integration

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem"
	"github.com/txidem/txidem-go/txidem/envelope"
)

// sequence is an ordered list of deliveries to one handler, and what must have come of them.
type sequence struct {
	name    string
	steps   []sequenceStep
	calls   int // how often the handler ran, failed calls included
	effects int // how often it succeeded
}

// sequenceStep is one delivery and the decision it must get. Its tags are the manifest's names.
type sequenceStep struct {
	ID           string `json:"meta_id"`
	ForgetBefore bool   `json:"forget_before"`
	Effect       string `json:"expect_effect"` // effectRun or effectSkip
	Outcome      string `json:"outcome"`       // of a handler that runs: "ok" or outcomeThrow
}

const (
	effectRun    = "run"
	effectSkip   = "skip"
	outcomeThrow = "throw"
)

func (s sequenceStep) fails() bool { return s.Outcome == outcomeThrow }

func runs(id string) sequenceStep  { return sequenceStep{ID: id, Effect: effectRun} }
func skips(id string) sequenceStep { return sequenceStep{ID: id, Effect: effectSkip} }
func fails(id string) sequenceStep {
	return sequenceStep{ID: id, Effect: effectRun, Outcome: outcomeThrow}
}

func runsForgotten(id string) sequenceStep {
	return sequenceStep{ID: id, Effect: effectRun, ForgetBefore: true}
}

// decisions are the six decisions of the wire contract in this project's own words.
var decisions = []sequence{
	{"the second delivery of a message is skipped", []sequenceStep{runs("a"), skips("a")}, 1, 1},
	{"and so is every later one", []sequenceStep{runs("a"), skips("a"), skips("a"), skips("a"), skips("a")}, 1, 1},
	{"other ids are other messages", []sequenceStep{runs("a"), runs("b"), runs("A"), skips("b"), skips("a"), skips("A")}, 3, 3},
	{"a failed attempt leaves the id free", []sequenceStep{fails("a"), fails("a"), runs("a"), skips("a")}, 3, 1},
	{"a message without an id always runs", []sequenceStep{runs(""), fails(""), runs(""), runs("")}, 4, 3},
	{"a forgotten message runs once more", []sequenceStep{runs("a"), skips("a"), runsForgotten("a"), skips("a")}, 2, 2},
}

var errThrown = errors.New("thrown")

// wrappers are the two ways to make a broker handler over a Guard.
var wrappers = map[string]func(w *world) func(context.Context, sequenceStep) error{
	"Wrap": func(w *world) func(context.Context, sequenceStep) error {
		return txidem.Wrap(w.guard, stepID, w.handleStep)
	},
	"WrapSeen": func(w *world) func(context.Context, sequenceStep) error {
		return txidem.WrapSeen(w.guard, stepID, func(ctx context.Context, s sequenceStep) error {
			return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error { return w.handleStep(ctx, tx, s) })
		})
	},
}

func stepID(s sequenceStep) string { return s.ID }

// handleStep makes its effect first, so that a failed call has one to be rolled back.
func (w *world) handleStep(ctx context.Context, tx pgx.Tx, s sequenceStep) error {
	if err := w.ok(ctx, tx); err != nil {
		return err
	}
	if s.fails() {
		return errThrown
	}
	return nil
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	for name, wrap := range wrappers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newWorld(t).replay(wrap, decisions)
		})
	}
}

// replay goes through the sequences, each with nothing in the database, and asserts what is there at its end.
func (w *world) replay(wrap func(*world) func(context.Context, sequenceStep) error, sequences []sequence) {
	w.t.Helper()
	for _, s := range sequences {
		w.exec(`TRUNCATE txidem_messages, biz`)
		w.calls.Store(0)
		recorded := map[string]bool{}
		for _, step := range s.steps {
			w.deliverStep(wrap(w), s.name, step)
			if step.ID != "" && !step.fails() {
				recorded[step.ID] = true
			}
		}
		require.Equal(w.t, int64(s.calls), w.calls.Load(), "%s: calls", s.name)
		require.Equal(w.t, s.effects, w.count(`SELECT count(*) FROM biz`), "%s: effects", s.name)
		require.Equal(w.t, len(recorded), w.count(`SELECT count(*) FROM txidem_messages`), "%s: records", s.name)
	}
	w.db.Invariant(w.t)
}

// deliverStep makes one delivery and asserts the decision.
func (w *world) deliverStep(deliver func(context.Context, sequenceStep) error, name string, step sequenceStep) {
	w.t.Helper()
	if step.ForgetBefore {
		require.NoError(w.t, w.guard.Forget(w.t.Context(), step.ID))
	}
	before := w.calls.Load()
	err := deliver(w.t.Context(), step)
	require.Equal(w.t, step.Effect == effectRun, w.calls.Load() > before, "%s: %+v", name, step)
	if step.fails() {
		require.Equal(w.t, errThrown, err, "%s: to be redelivered: %+v", name, step)
	} else {
		require.NoError(w.t, err, "%s: to be acked: %+v", name, step)
	}
}

// conformanceManifest is the part of the shared conformance data that concerns these tests.
type conformanceManifest struct {
	Idempotency struct {
		DedupKey struct {
			EnvelopeFile string `json:"envelope_file"`
			ExpectedKey  string `json:"expected_key"`
		} `json:"dedup_key"`
		Sequences struct {
			Cases []struct {
				Name            string
				Deliveries      []sequenceStep
				ExpectedEffects int `json:"expected_effects"`
			}
		}
	}
}

// readConformance returns the folder of the shared conformance data and its manifest. It skips the test when there is
// none, unless the folder was asked for by name.
func readConformance(t *testing.T) (string, conformanceManifest) {
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
	var m conformanceManifest
	require.NoError(t, json.Unmarshal(text, &m))
	return dir, m
}

// The manifest's expected_effects counts the calls of the handler, those that throw included: its sequence
// "throw-leaves-id-unmarked" has two that throw, one that succeeds, and the number 3. What a handler that threw did
// through its transaction is rolled back, so what is there at the end is counted beside it: the calls that succeeded.
func TestConformanceSequences(t *testing.T) {
	t.Parallel()
	_, m := readConformance(t)
	require.Len(t, m.Idempotency.Sequences.Cases, 6)
	for name, wrap := range wrappers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sequences []sequence
			for _, c := range m.Idempotency.Sequences.Cases {
				sequences = append(sequences, sequence{c.Name, c.Deliveries, c.ExpectedEffects, succeeded(t, c.Deliveries)})
			}
			newWorld(t).replay(wrap, sequences)
		})
	}
}

// succeeded counts the deliveries that run and succeed. It fails on a word that these tests do not know.
func succeeded(t *testing.T, steps []sequenceStep) int {
	t.Helper()
	n := 0
	for _, s := range steps {
		switch {
		case s.Effect == effectRun && s.Outcome == "ok":
			n++
		case s.Effect == effectRun && s.Outcome == outcomeThrow, s.Effect == effectSkip && s.Outcome == "":
		default:
			require.FailNow(t, "the manifest has a delivery that this test does not know", "%+v", s)
		}
	}
	return n
}

// The key is the message's own id, verbatim. Two deliveries of one body are one message, and a message of the same trace
// with another id is another.
func TestConformanceDedupKey(t *testing.T) {
	t.Parallel()
	dir, m := readConformance(t)
	body, err := os.ReadFile(filepath.Join(dir, m.Idempotency.DedupKey.EnvelopeFile))
	require.NoError(t, err)
	first, err := envelope.Decode(body)
	require.NoError(t, err)
	other := first
	other.Meta.ID = "another id"

	w := newWorld(t)
	deliver := txidem.Wrap(w.guard, envelope.Envelope.ID,
		func(ctx context.Context, tx pgx.Tx, _ envelope.Envelope) error { return w.ok(ctx, tx) })
	for _, e := range []envelope.Envelope{first, first, other, first} {
		require.NoError(t, deliver(t.Context(), e))
	}
	require.ElementsMatch(t, []string{m.Idempotency.DedupKey.ExpectedKey, other.Meta.ID}, w.recordedIDs())
	w.requireCalls(2)
	w.requireEffects(2)
}
