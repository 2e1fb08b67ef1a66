package pgerr

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// Only what the server decides before it commits proves that it did not.
func TestProvesRollback(t *testing.T) {
	t.Parallel()
	pgError := func(severity, code string) error {
		return fmt.Errorf("wrapped: %w", &pgconn.PgError{SeverityUnlocalized: severity, Code: code})
	}
	stalePlan := &pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "0A000", Routine: "RevalidateCachedQuery"}
	for name, tc := range map[string]struct {
		err    error
		proves bool
	}{
		"commit became rollback":      {pgx.ErrTxCommitRollback, true},
		"deferred constraint":         {pgError("ERROR", "23505"), true},
		"serialization failure":       {pgError("ERROR", "40001"), true},
		"transaction aborted":         {pgError("ERROR", "25P02"), true},
		"raised by a trigger":         {pgError("ERROR", "P0001"), true},
		"statement is gone":           {pgError("ERROR", "26000"), true},
		"plan does not fit":           {stalePlan, true},
		"not supported":               {pgError("ERROR", "0A000"), false},
		"gone with the session":       {pgError("FATAL", "26000"), false},
		"canceled, perhaps too late":  {pgError("ERROR", "57014"), false},
		"terminated, perhaps late":    {pgError("FATAL", "57P01"), false},
		"fatal, whatever its class":   {pgError("FATAL", "25P03"), false},
		"out of something":            {pgError("ERROR", "53100"), false},
		"connection":                  {io.ErrUnexpectedEOF, false},
		"context":                     {context.DeadlineExceeded, false},
		"a class that is not one yet": {pgError("ERROR", ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.proves, ProvesRollback(tc.err))
		})
	}
}
