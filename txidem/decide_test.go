package txidem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/internal/handlertx"
	"github.com/txidem/txidem-go/internal/pgerr"
)

func pgError(severity, code string) error {
	return fmt.Errorf("wrapped: %w", &pgconn.PgError{SeverityUnlocalized: severity, Code: code})
}

// example is a failure, and the decision that it is to lead to.
type example struct {
	failure failure
	want    decision
}

var (
	errBusiness = errors.New("the handler's own")
	errUnknown  = &commitUnknownError{cause: io.ErrUnexpectedEOF}
	errCopy     = &InFlightError{copy: true}
	errIdleEnd  = pgError("FATAL", pgerr.IdleInTransaction)
	ended       = context.Canceled
)

// examples has an example for each rule, by its name. Several of them fit later rules of their phase too: the order counts.
var examples = map[string]example{
	"a copy was in flight": {failure{phase: phaseOpen, err: errCopy}, finalHandler},
	"the context ended before the handler": {
		failure{phase: phaseOpen, err: pgError("ERROR", pgerr.Serialization), ctxErr: ended}, final,
	},
	"the table was locked": {
		failure{phase: phaseOpen, err: &InFlightError{}, closed: true}, final,
	},
	"forgetting ended in an unknown COMMIT": {failure{phase: phaseOpen, err: errUnknown, closed: true}, final},
	"the claim met a conflict": {
		failure{phase: phaseOpen, err: pgError("ERROR", pgerr.Deadlock)}, retrySoon,
	},
	"the claim met a dead connection": {
		failure{phase: phaseOpen, err: pgError("FATAL", "57P01"), closed: true}, retrySoon,
	},
	"the server was away": {
		failure{phase: phaseOpen, err: connectError("57P03")}, retryWhenBack,
	},
	"a statement of the claim was stale": {
		failure{phase: phaseOpen, err: pgError("ERROR", pgerr.FeatureNotSupported)}, retryTwice,
	},
	"the record was gone":                         {failure{phase: phaseOpen, err: ErrNoRecord}, retryTwice},
	"the claim failed":                            {failure{phase: phaseOpen, err: ErrNoTable}, final},
	"the handler queued nothing that can be sent": {failure{phase: phaseQueue, err: errBusiness}, finalHandler},

	"the context ended with the handler": {
		failure{phase: phaseHandler, err: pgError("ERROR", pgerr.Deadlock), ctxErr: ended}, final,
	},
	"the handler ended the transaction": {
		failure{phase: phaseHandler, err: errBusiness, use: handlertx.Use{Misuse: handlertx.ErrEnded}}, final,
	},
	"the handler misused the transaction": {
		failure{phase: phaseHandler, err: pgError("ERROR", pgerr.Deadlock), use: handlertx.Use{Misuse: ErrTxBusy}}, finalHandler,
	},
	"the handler said that it is permanent": {
		failure{phase: phaseHandler, err: Permanent(pgError("ERROR", pgerr.Deadlock))}, finalHandler,
	},
	"the handler was too slow": {
		failure{phase: phaseHandler, err: errIdleEnd, use: handlertx.Use{Lost: errIdleEnd}, closed: true}, finalHandler,
	},
	"the handler met a conflict": {
		failure{phase: phaseHandler, err: pgError("ERROR", pgerr.Serialization)}, rerun,
	},
	"the server ended the session": {
		failure{phase: phaseHandler, err: pgError("FATAL", "57P01"), closed: true}, rerun,
	},
	"a statement of the handler was stale": {
		failure{phase: phaseHandler, err: pgError("ERROR", pgerr.UnknownStatement)}, rerunStale,
	},
	"the handler lost its connection": {
		failure{phase: phaseHandler, err: errBusiness, use: handlertx.Use{Lost: io.ErrUnexpectedEOF}, closed: true}, rerun,
	},
	"the handler failed": {
		failure{
			phase: phaseHandler, err: errBusiness,
			use: handlertx.Use{Lost: context.DeadlineExceeded}, closed: true,
		}, finalHandler,
	},

	"COMMIT is unknown":               {failure{phase: phaseCommit, err: errUnknown, guarded: true}, resolve},
	"COMMIT is unknown without an id": {failure{phase: phaseCommit, err: errUnknown}, final},
	"the handler was too slow, and hid it": {
		failure{phase: phaseCommit, err: errConnLost, use: handlertx.Use{Lost: errIdleEnd}, guarded: true}, finalHandler,
	},
	"the handler's own deadline, or statement, closed the connection": {
		failure{
			phase: phaseCommit, err: errConnLost,
			use: handlertx.Use{Lost: context.DeadlineExceeded}, guarded: true,
		}, finalHandler,
	},
	"the connection was lost before COMMIT": {failure{phase: phaseCommit, err: errConnLost, guarded: true}, rerun},
	"COMMIT met a conflict": {
		failure{phase: phaseCommit, err: pgError("ERROR", pgerr.Serialization), guarded: true}, rerun,
	},
	"the handler hid a failure": {
		failure{phase: phaseCommit, err: errHiddenFailure, guarded: true}, finalHandler,
	},
	"COMMIT was refused": {
		failure{phase: phaseCommit, err: pgError("ERROR", "23505"), guarded: true}, finalHandler,
	},
	"COMMIT was not sent": {
		failure{phase: phaseCommit, err: handlertx.ErrEnded, guarded: true}, final,
	},

	"not committed, and the context has ended": {
		failure{phase: phaseRolledBack, err: io.EOF, ctxErr: ended}, final,
	},
	"not committed, since the handler was too slow": {failure{phase: phaseRolledBack, err: errIdleEnd}, finalHandler},
	"not committed, as the server answered": {
		failure{phase: phaseRolledBack, err: pgError("ERROR", pgerr.QueryCanceled)}, finalHandler,
	},
	"not committed, the connection broke": {
		failure{phase: phaseRolledBack, err: io.ErrUnexpectedEOF}, rerun,
	},
}

// Each rule has an example that it, and no rule before it, fits.
func TestDecide(t *testing.T) {
	t.Parallel()
	for i := range rules {
		r := &rules[i]
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			e, found := examples[r.name]
			require.True(t, found, "no example")
			require.Equal(t, r.name, ruleFor(&e.failure).name)
			got, err := decide(e.failure)
			require.Equal(t, e.want, got)
			require.ErrorIs(t, err, e.failure.err, "the cause stays in the chain")
			require.NotContains(t, err.Error(), "\n")
		})
	}
	require.Len(t, examples, len(rules), "examples of rules that are gone")
}

// What is not the handler's doing is not blamed on it, and the other way round.
func TestDecideWhatLooksAlike(t *testing.T) {
	t.Parallel()
	unsupported := &pgconn.PgError{Severity: "ERROR", Code: pgerr.FeatureNotSupported}
	stalePlan := &pgconn.PgError{Severity: "ERROR", Code: pgerr.FeatureNotSupported, Routine: "RevalidateCachedQuery"}
	for name, e := range map[string]example{
		"an idle timeout of another database's": {failure{phase: phaseHandler, err: errIdleEnd}, finalHandler},
		"a statement that no server supports":   {failure{phase: phaseHandler, err: unsupported}, finalHandler},
		"a plan whose table was altered":        {failure{phase: phaseHandler, err: stalePlan}, rerunStale},
		"a wrong password":                      {failure{phase: phaseOpen, err: connectError("28P01")}, final},
		"no pg_hba.conf entry":                  {failure{phase: phaseOpen, err: connectError("28000")}, final},
		"an unknown database":                   {failure{phase: phaseOpen, err: connectError("3D000")}, final},
		"a database that takes no connections": {
			failure{phase: phaseOpen, err: connectError("55000")}, retryWhenBack,
		},
		"too many connections": {
			failure{phase: phaseOpen, err: connectError("53300")}, retryWhenBack,
		},
		"a server that is starting": {
			failure{phase: phaseOpen, err: connectError("57P03")}, retryWhenBack,
		},
		"a pooler whose server is away": {
			failure{phase: phaseOpen, err: connectError("08P01")}, retryWhenBack,
		},
		"a pooler with a system error": {
			failure{phase: phaseOpen, err: connectError("58000")}, retryWhenBack,
		},
		"a pooler with an internal error": {
			failure{phase: phaseOpen, err: connectError("XX000")}, retryWhenBack,
		},
		"a NUL in the simple protocol": {
			failure{phase: phaseOpen, err: pgError("ERROR", pgerr.Protocol)}, final,
		},
		"a commit that became a rollback": {
			failure{phase: phaseCommit, err: pgx.ErrTxCommitRollback, guarded: true}, final,
		},
		"an argument that closed the connection": {
			failure{
				phase: phaseHandler, err: errBusiness,
				use: handlertx.Use{Lost: pgx.ErrPreprocessingBatch{}}, closed: true,
			}, finalHandler,
		},
		"transaction_timeout": {
			failure{phase: phaseHandler, err: pgError("FATAL", pgerr.TransactionTimeout), closed: true}, finalHandler,
		},
		"the handler's own statement_timeout": {
			failure{phase: phaseHandler, err: pgError("ERROR", pgerr.QueryCanceled)}, finalHandler,
		},
		"a copy in flight when the context has ended": {failure{phase: phaseOpen, err: errCopy, ctxErr: ended}, final},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := decide(e.failure)
			require.Equal(t, e.want, got, ruleFor(&e.failure).name)
		})
	}
}

// A timeout that ended another session is not said to be this one's.
func TestTooSlowIsAboutThisSession(t *testing.T) {
	t.Parallel()
	_, err := decide(failure{phase: phaseHandler, err: errIdleEnd})
	require.Equal(t, errIdleEnd, err)
	_, err = decide(failure{phase: phaseHandler, err: errIdleEnd, closed: true})
	require.ErrorContains(t, err, "IdleLimit")
}

// connectError is what pgx returns when the server refused the session. pgconn.ConnectError keeps its cause to itself.
func connectError(code string) error {
	return &refusedSessionError{&pgconn.ConnectError{}, pgError("FATAL", code)}
}

type refusedSessionError struct {
	connect *pgconn.ConnectError
	cause   error
}

func (r *refusedSessionError) Error() string   { return r.cause.Error() }
func (r *refusedSessionError) Unwrap() []error { return []error{r.connect, r.cause} }
