// Package sqlgen holds every statement that txidem sends about its table, rendered for one schema and table.
//
// All parameters are cast: without a cast the exec and simple-protocol modes of pgx leave the server to guess. Only SQL
// that PostgreSQL 13 has is used.
package sqlgen

import "strings"

// Statements are the statements for one table. They are rendered once, when a Guard is made.
type Statements struct {
	// Claim inserts the record, waiting at most $3 (a lock_timeout) for a copy in flight, and marks the transaction (see
	// Commit). Parameters: message id, consumer, lock_timeout, idle_in_transaction_session_timeout. It affects one row when
	// the claim is ours, none otherwise.
	Claim string

	// Pipeline is Claim for a transaction whose other statements are on their way already: where Claim affects no row it
	// fails, with NotClaimedText in the error, so that the server passes over them. Parameters as for Claim. It returns one
	// row.
	Pipeline string

	// ClaimMany is Claim for several messages of a consumer. $1 is an array of message ids, in ascending order of their bytes
	// and without repetitions; the other parameters are those of Claim. It returns one row: the ids that are ours, NULL when
	// there is none, and lock_timeout, which is as before whatever was claimed.
	ClaimMany string

	// Join is Claim for a transaction that somebody else owns: whatever it finds, lock_timeout is as before when it
	// returns. Parameters as for Claim. It returns one row with the number of records inserted.
	Join string

	// Look reads the record. Parameters: message id, consumer. It returns no row, or one with two booleans: whether the
	// message was processed (false: the row is a lease), and whether the running transaction wrote the row.
	Look string

	// LookMany is Look for several messages: $1 is an array of message ids. It returns a row for each record that is there,
	// with the message id and the columns of Look.
	LookMany string

	// Mark marks the transaction of a message without an id, as Claim does for the others.
	// Parameter: idle_in_transaction_session_timeout.
	Mark string

	// Delete removes the record of a processed message and leaves a lease alone. Parameters: message id, consumer.
	Delete string

	// DeleteMany removes the records of several messages, which are the running transaction's own. Parameters: array of
	// message ids, consumer.
	DeleteMany string
}

// New renders the statements for the table of that name.
func New(schema, table string) Statements {
	r := strings.NewReplacer("{table}", Qualify(schema, table), "{mark}", markWith("$4::text"))
	one := r.Replace(claim)
	return Statements{
		Claim:      one,
		Pipeline:   "WITH claim AS (\n" + one + "\n)\n" + claimedOrFail,
		ClaimMany:  r.Replace(claimMany),
		Join:       r.Replace(join),
		Look:       r.Replace("SELECT " + found + "\nFROM {table} WHERE message_id = $1::text AND consumer = $2::text"),
		LookMany:   r.Replace("SELECT message_id, " + found + "\nFROM {table} WHERE message_id = ANY ($1::text[]) AND consumer = $2::text"),
		Mark:       "SELECT kept, idle FROM " + markWith("$1::text"),
		Delete:     r.Replace(del),
		DeleteMany: r.Replace("DELETE FROM {table} WHERE message_id = ANY ($1::text[]) AND consumer = $2::text"),
	}
}

// markWith renders mark with its parameter.
func markWith(idle string) string { return strings.ReplaceAll(mark, "{idle}", idle) }

// The ends of a transaction. pgx takes a text that is the name of a prepared statement for that statement, and "commit" is
// a name that somebody may use: nobody uses these.
const (
	Commit   = "commit /* txidem */"
	Rollback = "rollback /* txidem */"

	// GuardedCommit is Commit for a transaction that may not be the one that a claim or Mark began. It is one message.
	GuardedCommit = AssertMark + "; " + Commit
)

// Begin renders the beginning of a transaction with the modes that follow BEGIN. Empty ones are left out.
func Begin(modes ...string) string {
	text := "begin"
	for _, mode := range modes {
		if mode != "" {
			text += " " + mode
		}
	}
	return text + " /* txidem */"
}

// AssertMark looks for the mark, a setting that is local to the transaction of the claim: where it is gone, the transaction
// was ended behind our back, and whatever is open now is another one. Then the cast fails, with GuardText in the error, and
// what follows is not reached.
const AssertMark = `SELECT (CASE WHEN coalesce(current_setting('txidem.lock_timeout', true), '') <> '' THEN '1'
  ELSE '` + GuardText + `' END)::int`

// GuardText is found in the error of AssertMark when the transaction is not the one that was begun.
const GuardText = "txidem: not the transaction of the claim"

// NotClaimedText is found in the error of Pipeline when it made no record.
const NotClaimedText = "txidem: not claimed, a duplicate most likely"

// claimedOrFail makes an error of a claim without a row. The text is cast when the row is computed, not when the statement
// is planned, since the CASE depends on a count.
const claimedOrFail = `SELECT (CASE WHEN count(*) = 1 THEN '1' ELSE '` + NotClaimedText + `' END)::int FROM claim`

// mark keeps the session's lock_timeout, which also marks the transaction, and bounds how long the transaction may be
// idle: by the last parameter, or by what the session has when that is stricter. 0 means no limit to the server.
const mark = `(SELECT set_config('txidem.lock_timeout', current_setting('lock_timeout'), true) AS kept,
        set_config('idle_in_transaction_session_timeout',
          CASE WHEN session.idle <> '0' AND session.idle::interval < {idle}::interval THEN session.idle ELSE {idle} END, true) AS idle
      FROM (SELECT current_setting('idle_in_transaction_session_timeout') AS idle) AS session) AS marked`

// claim bounds its own wait: the subqueries in FROM run before the INSERT reaches the key. They are nested, so that the
// session's lock_timeout has been kept before it is replaced. RETURNING puts it back, and runs for a claimed row only;
// without one the transaction is rolled back, which puts it back as well.
//
// Lock relied on: the unique index makes a second INSERT of a key wait for the transaction that inserted it first.
const claim = `INSERT INTO {table} (message_id, consumer, processed_at)
SELECT $1::text, $2::text, now()
FROM (SELECT set_config('lock_timeout', $3::text, true) FROM {mark}) AS bounded
ON CONFLICT (message_id, consumer) DO NOTHING
RETURNING set_config('lock_timeout', current_setting('txidem.lock_timeout'), true)`

// join cannot use RETURNING to put lock_timeout back, since it does not run for a duplicate and the caller's transaction
// goes on. The final SELECT does it: it needs the count, so it runs after the INSERT. The value travels as a column.
const join = `WITH kept AS MATERIALIZED (SELECT current_setting('lock_timeout') AS lock_timeout),
bounded AS MATERIALIZED (SELECT set_config('lock_timeout', $3::text, true), lock_timeout FROM kept),
claim AS (
  INSERT INTO {table} (message_id, consumer, processed_at)
  SELECT $1::text, $2::text, now() FROM bounded
  ON CONFLICT (message_id, consumer) DO NOTHING
  RETURNING 1
)
SELECT claimed.n, set_config('lock_timeout', bounded.lock_timeout, true)
FROM (SELECT count(*) AS n FROM claim) AS claimed, bounded`

// claimMany claims in the order of the array, so that of two transactions that claim several ids in common one waits for
// the other at the first of these, and they cannot deadlock. The final SELECT puts lock_timeout back: it needs what
// was claimed, so it runs after the INSERT.
const claimMany = `WITH bounded AS MATERIALIZED (SELECT set_config('lock_timeout', $3::text, true) FROM {mark}),
claim AS (
  INSERT INTO {table} (message_id, consumer, processed_at)
  SELECT given.id, $2::text, now() FROM bounded, unnest($1::text[]) AS given (id)
  ON CONFLICT (message_id, consumer) DO NOTHING
  RETURNING message_id
)
SELECT claimed.ids, set_config('lock_timeout', current_setting('txidem.lock_timeout'), true)
FROM (SELECT array_agg(message_id) AS ids FROM claim) AS claimed`

// found tells our own uncommitted row from one that another transaction committed. A row of ours carries our now(); two
// transactions may share a now(), so its xmin must be in progress too, and a visible row in progress can only be ours
// (a savepoint's xmin differs from the transaction's, so xmin alone cannot be compared). The arithmetic widens the
// 32-bit xmin to the epoch of the snapshot's xmax; CASE keeps it from rows too old for that.
const found = `processed_at IS NOT NULL,
  CASE WHEN processed_at = now() THEN
    (SELECT txid_status(n - ((n - x + 2147483648) & 4294967295) + 2147483648) = 'in progress'
     FROM (SELECT txid_snapshot_xmax(txid_current_snapshot()) AS n, xmin::text::bigint AS x) AS xids)
  ELSE false END`

const del = `DELETE FROM {table} WHERE message_id = $1::text AND consumer = $2::text AND processed_at IS NOT NULL`
