package integration

import (
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/txidem/txidem-go/integration/pgbouncer"
	"github.com/txidem/txidem-go/integration/testdb"
)

// core are the tests that must hold however a guard is plugged in. By themselves they run over a pool with pgx's defaults.
var core = map[string]func(*testing.T){
	"FailedFirstAttempt":             TestFailedFirstAttempt,
	"FailedFirstAttemptInTheSeenSet": TestFailedFirstAttemptInTheSeenSet,
	"HiddenSQLError":                 TestHiddenSQLError,
	"ErrorInsideASavepoint":          TestErrorInsideASavepoint,
	"HandlerThatDoesNotReturn":       TestHandlerThatDoesNotReturn,
	"TwoConsumers":                   TestTwoConsumers,
	"EmptyIDRunsUnguarded":           TestEmptyIDRunsUnguarded,
	"ConstraintThatFailsAtCommit":    TestConstraintThatFailsAtCommit,
	"ClaimThatMakesNoRecord":         TestClaimThatMakesNoRecord,
	"LeaseIsInFlight":                TestLeaseIsInFlight,
	"TwentyCopiesAtOnce":             TestTwentyCopiesAtOnce,
	"WaiterTakesOver":                TestWaiterTakesOverWhenTheFirstFails,
	"WaitersDoNotStarveOthers":       TestWaitersDoNotStarveOthers,
	"ForgetWaits":                    TestForgetWaitsForACopyInFlight,
	"ForgetGivesUp":                  TestForgetGivesUp,
	"RememberWaits":                  TestRememberWaitsForACopyInFlight,
	"ContextIsOver":                  TestContextIsOverWhenTheHandlerReturnsNil,
	"StatementIsCutOff":              TestStatementIsCutOff,
	"ContextEndsWhileTheClaimWaits":  TestContextEndsWhileTheClaimWaits,
	"HandedTxHasEveryMethod":         TestHandedTxHasEveryMethod,
	"HandlerMustNotEnd":              TestHandlerMustNotEndTheTransaction,
	"TransactionControlIsRefused":    TestTransactionControlIsRefused,
	"TransactionControlIsFound":      TestTransactionControlThatGetsThroughIsFound,
	"WorkAfterTheHiddenEnd":          TestWorkAfterTheHiddenEndIsNotCommitted,
	"SavepointsAreFine":              TestSavepointsAreFine,
	"ResultsLeftOpen":                TestResultsLeftOpen,
	"ResultsReadToTheEnd":            TestResultsReadToTheEnd,
	"ConflictsAreTriedAgain":         TestConflictsAreTriedAgain,
	"ConflictAtCommit":               TestConflictAtCommit,
	"CopyInFlightUnderStricter":      TestCopyInFlightUnderStricterLevels,
	"SilentWorker":                   TestSilentWorker,
	"CallerGoesOnAfterADuplicate":    TestCallerGoesOnAfterAJoinedDuplicate,
	"AlreadyClaimed":                 TestAlreadyClaimed,
	"JoinedClaim":                    TestJoinedClaim,
	"JoinedClaimWaits":               TestJoinedClaimWaits,
	"Pipeline":                       TestPipeline,
	"PipelineForms":                  TestPipelineForms,
	"PipelineFails":                  TestPipelineFails,
	"Batch":                          TestBatch,
	"BatchWithFailingMessages":       TestBatchWithFailingMessages,
	"BatchWithACopyInFlight":         TestBatchWithACopyInFlight,
}

// ways holds the changes to newWorld for the tests below the name of a way.
var ways sync.Map

// wayOf returns what the way under which t runs changes.
func wayOf(t *testing.T) []any {
	parts := strings.SplitN(t.Name(), "/", 3)
	if len(parts) < 3 {
		return nil
	}
	changes, _ := ways.Load(parts[0] + "/" + parts[1])
	list, _ := changes.([]any)
	return list
}

// runCore runs the core tests in one way.
func runCore(t *testing.T, changes ...any) {
	t.Helper()
	ways.Store(t.Name(), changes)
	for name, test := range core {
		t.Run(name, test)
	}
}

// warmModes are the modes in which a statement on a warm connection takes one round trip.
var warmModes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}

// inModes runs a test in some of the ways of pgx to execute a statement.
func inModes(t *testing.T, modes []pgx.QueryExecMode, test func(t *testing.T, mode func(*pgxpool.Config))) {
	t.Helper()
	for _, mode := range modes {
		t.Run(strings.ReplaceAll(mode.String(), " ", "_"), func(t *testing.T) {
			t.Parallel()
			test(t, execMode(mode))
		})
	}
}

// inEveryMode runs a test in all of them.
func inEveryMode(t *testing.T, test func(t *testing.T, mode func(*pgxpool.Config))) {
	t.Helper()
	inModes(t, append([]pgx.QueryExecMode{pgx.QueryExecModeDescribeExec}, warmModes...), test)
}

// The core in each of pgx's exec modes but its default, in which the tests run by themselves.
func TestExecModes(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(strings.ReplaceAll(mode.String(), " ", "_"), func(t *testing.T) { runCore(t, execMode(mode)) })
	}
}

// The core under the stricter isolation levels.
func TestIsolationLevels(t *testing.T) {
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		t.Run(strings.ReplaceAll(string(level), " ", "_"), func(t *testing.T) { runCore(t, isolation(level)) })
	}
}

// The core through PgBouncer in transaction mode, in the four exec modes that need nothing of it. pgx's default mode,
// cache_statement, needs its support for prepared statements, which not every version has.
func TestPgBouncer(t *testing.T) {
	if !pgbouncer.Installed() {
		t.Skip("no pgbouncer on the PATH: install it (Debian: apt-get install pgbouncer)")
	}
	dsn := testdb.New(t).DSN()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(strings.ReplaceAll(mode.String(), " ", "_"), func(t *testing.T) {
			bouncer := pgbouncer.Start(t, dsn)
			runCore(t, execMode(mode), func(c *pgxpool.Config) { bouncer.Through(c.ConnConfig) })
		})
	}
}
