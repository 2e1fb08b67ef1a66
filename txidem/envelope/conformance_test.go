package envelope_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem/envelope"
)

type manifest struct {
	SchemaVersion int `json:"schema_version"`
	Cases         []conformanceCase
	Idempotency   struct {
		DedupKey struct {
			EnvelopeFile string `json:"envelope_file"`
			ExpectedKey  string `json:"expected_key"`
		} `json:"dedup_key"`
	}
}

type conformanceCase struct {
	Name, File string
	Valid      bool
	Expect     struct {
		URN, Lang     string
		Data          json.RawMessage
		Attempts      int
		SchemaVersion int `json:"schema_version"`
		DeadLetter    *struct {
			Reason        string
			OriginalQueue string `json:"original_queue"`
		} `json:"dead_letter"`
	}
}

// conformance returns the folder of the shared conformance data, and its manifest. It skips the test when there is none,
// unless the folder was asked for by name.
func conformance(t *testing.T) (string, manifest) {
	t.Helper()
	dir, named := os.LookupEnv("TXIDEM_CONFORMANCE")
	if !named {
		dir = filepath.Join("..", "..", "..", "shared", "conformance")
	}
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if errors.Is(err, fs.ErrNotExist) && !named {
		t.Skipf("the shared conformance data is missing: %v; put it there, or name its folder in TXIDEM_CONFORMANCE", err)
	}
	require.NoError(t, err)
	var m manifest
	require.NoError(t, json.Unmarshal(text, &m))
	return dir, m
}

func TestConformanceCases(t *testing.T) {
	t.Parallel()
	dir, m := conformance(t)
	require.Equal(t, envelope.SchemaVersion, m.SchemaVersion)
	require.NotEmpty(t, m.Cases)
	for _, c := range m.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(filepath.Join(dir, c.File))
			require.NoError(t, err)
			require.Equal(t, c.Valid, envelope.Accepts(body))
			if c.Valid {
				checkCase(t, c, body)
			}
		})
	}
}

func checkCase(t *testing.T, c conformanceCase, body []byte) {
	t.Helper()
	e, err := envelope.Decode(body)
	require.NoError(t, err)
	assert.Equal(t, c.Expect.URN, e.Job)
	assert.Equal(t, c.Expect.Lang, e.Meta.Lang)
	assert.Equal(t, c.Expect.Attempts, e.Attempts)
	assert.Equal(t, c.Expect.SchemaVersion, e.Meta.SchemaVersion)
	assert.JSONEq(t, string(c.Expect.Data), string(e.Data))
	assert.NotEmpty(t, e.ID())
	assert.NotEmpty(t, e.TraceID)
	assert.NotZero(t, e.Meta.CreatedAt)
	if want := c.Expect.DeadLetter; want != nil {
		require.NotNil(t, e.DeadLetter)
		assert.Equal(t, want.Reason, e.DeadLetter.Reason)
		assert.Equal(t, want.OriginalQueue, e.DeadLetter.OriginalQueue)
	} else {
		assert.Nil(t, e.DeadLetter)
	}
	again, err := envelope.Encode(e)
	require.NoError(t, err)
	assert.NotContains(t, string(again), `"urn":`)
	decoded, err := envelope.Decode(again)
	require.NoError(t, err)
	assert.Equal(t, e.Meta, decoded.Meta)
	assert.JSONEq(t, string(e.Data), string(decoded.Data))
}

func TestConformanceDedupKey(t *testing.T) {
	t.Parallel()
	dir, m := conformance(t)
	key := m.Idempotency.DedupKey
	require.NotEmpty(t, key.ExpectedKey)
	body, err := os.ReadFile(filepath.Join(dir, key.EnvelopeFile))
	require.NoError(t, err)
	e, err := envelope.Decode(body)
	require.NoError(t, err)
	assert.Equal(t, key.ExpectedKey, e.ID())
	assert.NotEqual(t, e.TraceID, e.ID())
}
