// Package sqltext looks at the beginning of SQL texts: what kind of statement is this, and can it end a transaction? It is a
// scanner for white space, comments and words, and no parser.
package sqltext

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// Control returns the transaction control that a statement begins with, in capitals, or "". Savepoints are none:
// SAVEPOINT, RELEASE and ROLLBACK TO stay inside the transaction. Only the beginning is looked at, which is all that the
// extended protocol takes; what a string of several statements hides is found afterwards.
func Control(sql string) string {
	first, rest := nextWord(sql)
	switch first {
	case "BEGIN", "START", "COMMIT", "END", "ABORT":
		return first
	case "ROLLBACK":
		if rollsBackToSavepoint(rest) {
			return ""
		}
		return first
	case "PREPARE":
		if FirstWord(rest) == "TRANSACTION" {
			return "PREPARE TRANSACTION"
		}
	}
	return ""
}

// Plain reports whether a text is one statement that reads or writes rows. Such a statement cannot end a transaction, not
// even an implicit one, which a procedure or a DO block can end.
func Plain(sql string, args []any) bool {
	switch FirstWord(sql) {
	case "INSERT", "UPDATE", "DELETE", "MERGE", "SELECT", "WITH", "VALUES", "TABLE":
		return single(sql, args)
	default:
		return false
	}
}

// Contained reports whether a text is one statement that cannot end the transaction block it is in. Control that is not for
// savepoints has been refused before. A text that begins with another word may be the name of any prepared statement.
func Contained(sql string, args []any) bool {
	switch FirstWord(sql) {
	case "SAVEPOINT", "RELEASE", "ROLLBACK", "SET", "RESET", "LOCK", "CALL", "DO", "NOTIFY", "COPY", "TRUNCATE",
		"CREATE", "ALTER", "DROP":
		return single(sql, args)
	default:
		return Plain(sql, args)
	}
}

// single reports whether a text is one statement, and goes to the server as it is. What follows a semicolon is taken for
// another one: to know better would take a parser.
func single(sql string, args []any) bool {
	return !strings.Contains(strings.TrimRight(sql, "; \t\r\n"), ";") && !rewritten(args)
}

// CopiesIn reports whether a statement waits for rows from the client.
func CopiesIn(sql string) bool {
	word, rest := nextWord(sql)
	return word == "COPY" && strings.Contains(strings.ToUpper(rest), "STDIN")
}

// Blank reports whether a text has no statement in it.
func Blank(sql string) bool { return skipBlank(sql) == "" }

// rewritten reports whether pgx will have the text changed by code that is not its own. Options come before arguments.
func rewritten(args []any) bool {
	for _, arg := range args {
		switch arg.(type) {
		case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID, pgx.NamedArgs, pgx.StrictNamedArgs:
		case pgx.QueryRewriter:
			return true
		default:
			return false
		}
	}
	return false
}

// rollsBackToSavepoint reads what follows ROLLBACK: [ WORK | TRANSACTION ] TO.
func rollsBackToSavepoint(rest string) bool {
	word, rest := nextWord(rest)
	if word == "WORK" || word == "TRANSACTION" {
		word, _ = nextWord(rest)
	}
	return word == "TO"
}

// FirstWord returns the first word of a text in capitals.
func FirstWord(sql string) string {
	word, _ := nextWord(sql)
	return word
}

// nextWord returns the first word of sql in capitals, and what follows it. White space, comments and empty statements
// before it are passed over, as the server does.
func nextWord(sql string) (word, rest string) {
	sql = skipBlank(sql)
	end := 0
	for end < len(sql) && inWord(sql[end]) {
		end++
	}
	return strings.ToUpper(sql[:end]), sql[end:]
}

// inWord reports whether a byte can be part of an unquoted identifier or keyword.
func inWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '$' || c >= 0x80
}

func skipBlank(sql string) string {
	for {
		sql = strings.TrimLeft(sql, " \t\n\r\f\v;")
		switch {
		case strings.HasPrefix(sql, "--"):
			sql = sql[lineEnd(sql):]
		case strings.HasPrefix(sql, "/*"):
			sql = sql[commentEnd(sql):]
		default:
			return sql
		}
	}
}

func lineEnd(sql string) int {
	if i := strings.IndexAny(sql, "\n\r"); i >= 0 {
		return i
	}
	return len(sql)
}

// commentEnd returns the length of the block comment that sql begins with. Block comments nest in PostgreSQL.
func commentEnd(sql string) int {
	depth := 0
	for i := 0; i+1 < len(sql); i++ {
		switch sql[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(sql)
}
