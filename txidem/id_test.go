package txidem

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckID(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 512) // 1024 bytes
	for name, tc := range map[string]struct {
		id       string
		required bool
		guarded  bool
		problem  string
	}{
		"ordinary":                  {id: "f1e2d3c4", guarded: true},
		"verbatim spaces":           {id: "  ", guarded: true},
		"empty runs unguarded":      {id: ""},
		"empty, required":           {id: "", required: true, problem: "is empty"},
		"longest":                   {id: long, guarded: true},
		"one byte too long":         {id: long + "x", problem: "has 1025 bytes"},
		"long and compressible":     {id: strings.Repeat("a", 200_000), problem: "has 200000 bytes"},
		"NUL":                       {id: "a\x00b", problem: "NUL"},
		"NUL alone":                 {id: "\x00", problem: "NUL"},
		"not UTF-8":                 {id: "a\xff", problem: "UTF-8"},
		"half of a surrogate pair":  {id: "\xed\xa0\x80", problem: "UTF-8"},
		"replacement rune is legal": {id: "\uFFFD", guarded: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guarded, err := checkID(tc.id, tc.required)
			require.Equal(t, tc.guarded, guarded)
			if tc.problem == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrInvalidID)
			var idErr *IDError
			require.ErrorAs(t, err, &idErr)
			require.Equal(t, tc.id, idErr.ID)
			require.Contains(t, idErr.Problem, tc.problem)
			require.False(t, Retryable(err))
			require.Less(t, len(err.Error()), 400, "a huge id must not flood the log")
		})
	}
}
