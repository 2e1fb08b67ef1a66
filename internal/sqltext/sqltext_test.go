package sqltext

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestControl(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"begin":                               "BEGIN",
		"START TRANSACTION":                   "START",
		"Commit":                              "COMMIT",
		"commit and chain":                    "COMMIT",
		"commit prepared 'x'":                 "COMMIT",
		"end":                                 "END",
		"END WORK":                            "END",
		"abort":                               "ABORT",
		"rollback":                            "ROLLBACK",
		"rollback;":                           "ROLLBACK",
		"rollback work":                       "ROLLBACK",
		"rollback transaction and no chain":   "ROLLBACK",
		"rollback prepared 'x'":               "ROLLBACK",
		"prepare transaction 'x'":             "PREPARE TRANSACTION",
		"PREPARE /* */ TRANSACTION 'x'":       "PREPARE TRANSACTION",
		" \n\t; ;commit":                      "COMMIT",
		"-- a comment\ncommit":                "COMMIT",
		"--\rcommit":                          "COMMIT",
		"/* a /* nested */ one */ commit":     "COMMIT",
		"/**/commit":                          "COMMIT",
		"/*/ still a comment */rollback":      "ROLLBACK",
		"commit--":                            "COMMIT",
		"commit/**/":                          "COMMIT",
		"savepoint a":                         "",
		"release savepoint a":                 "",
		"rollback to a":                       "",
		"ROLLBACK TO SAVEPOINT a":             "",
		"rollback work to a":                  "",
		"rollback transaction to savepoint a": "",
		"rollback /* to */ /**/ to a":         "",
		"rollback -- to a":                    "ROLLBACK",
		"prepare p as select 1":               "",
		"select 1 -- commit":                  "",
		"insert into t values ('commit')":     "",
		"/* commit */ select 1":               "",
		"/* commit":                           "",
		"-- commit":                           "",
		"committed":                           "",
		"beginning":                           "",
		"commit_log":                          "",
		"end_of_day":                          "",
		"begin2":                              "",
		"abort$x":                             "",
		"endé":                                "",
		"rollback to_a":                       "ROLLBACK",
		`"commit"`:                            "",
		"":                                    "",
		"set transaction isolation level reserved": "",
	} {
		require.Equal(t, want, Control(sql), "%q", sql)
	}
}

// Whatever blank text stands before a statement, the decision is the same.
func FuzzControl(f *testing.F) {
	f.Add("commit", 1)
	f.Add("/* /* */ */ rollback to a", 2)
	f.Add("--\n;begin", 3)
	f.Fuzz(func(t *testing.T, sql string, n int) {
		before := []string{"", " ", "\n;", "-- x\n", "/* /* y */ */", "/**/;"}[uint(n)%6]
		require.Equal(t, Control(sql), Control(before+sql))
		if word := Control(sql); word != "" {
			require.Contains(t, strings.ToUpper(sql), strings.Fields(word)[0])
		}
	})
}

type rewriter struct{}

func (rewriter) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return "commit", nil, nil
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]bool{
		"insert into t values (1)":              true,
		" /* sqlc */ -- x\n UPDATE t SET a = 1": true,
		"select 1 ; \n":                         true,
		"WITH a AS (SELECT 1) SELECT 1":         true,
		"select 1; commit":                      false,
		"select ';'":                            false, // not worth a parser: COMMIT asks
		"call p()":                              false,
		"do $$begin commit; end$$":              false,
		"prepared_name":                         false,
		"set local x = 'y'":                     false,
		"savepoint a":                           false,
		"(select 1)":                            false,
		"copy t from stdin":                     false,
		"":                                      false,
	} {
		require.Equal(t, want, Plain(sql, nil), "%q", sql)
	}
	const sql = "select 1"
	require.True(t, Plain(sql, []any{pgx.QueryExecModeExec, pgx.NamedArgs{"a": 1}}))
	require.True(t, Plain(sql, []any{1, rewriter{}}), "an argument, not an option")
	require.False(t, Plain(sql, []any{rewriter{}}))
	require.False(t, Plain(sql, []any{pgx.QueryResultFormats{1}, rewriter{}}))
}
