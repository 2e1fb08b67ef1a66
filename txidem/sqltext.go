package txidem

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// txControl returns the transaction control that a statement begins with, in capitals, or "". Savepoints are none:
// SAVEPOINT, RELEASE and ROLLBACK TO stay inside the transaction. Only the beginning is looked at, which is all that the
// extended protocol takes; what a string of several statements hides is found afterwards.
func txControl(sql string) string {
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
		if second, _ := nextWord(rest); second == "TRANSACTION" {
			return "PREPARE TRANSACTION"
		}
	}
	return ""
}

// plain reports whether a text is one statement that reads or writes rows, and goes to the server as it is: such a statement
// cannot end the transaction. A procedure or a DO block can end an implicit one, a name may stand for any prepared
// statement, and what follows a semicolon is another statement.
func plain(sql string, args []any) bool {
	switch word, _ := nextWord(sql); word {
	case "INSERT", "UPDATE", "DELETE", "MERGE", "SELECT", "WITH", "VALUES", "TABLE":
		return !strings.Contains(strings.TrimRight(sql, "; \t\r\n"), ";") && !rewritten(args)
	default:
		return false
	}
}

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
