// Package sqlgen holds the statements that claim, look at and remove records, rendered for one schema and table.
//
// All parameters are cast: without a cast the exec and simple-protocol modes of pgx leave the server to guess. Only SQL
// that PostgreSQL 14 has is used.
package sqlgen

import "strings"

// Statements are the statements for one table. They are rendered once, when a Guard is made.
type Statements struct {
	// Claim inserts the record, waiting at most $3 (a lock_timeout) for a copy in flight, and marks the transaction (see
	// Commit). Parameters: message id, consumer, lock_timeout, idle_in_transaction_session_timeout. It returns one row when
	// the claim is ours, and none otherwise: then lock_timeout is left at $3, and the transaction is to be rolled back.
	Claim string

	// Pipeline is Claim for a transaction whose other statements are on their way already: where the claim is not ours it
	// fails, with NotClaimedText in the error, so that the server passes over them. Parameters as for Claim. It returns one
	// row.
	Pipeline string

	// ClaimMany is Claim for several messages of a consumer. $1 is an array of message ids, in ascending order of their bytes
	// and without repetitions; the other parameters are those of Claim. It returns one row: the ids that are ours, NULL when
	// there is none, and lock_timeout, which is as before whatever was claimed.
	ClaimMany string

	// ClaimJoined is Claim for a transaction that somebody else owns: it is not marked, and lock_timeout is as before
	// whatever was found. Parameters: message id, consumer, lock_timeout. It returns one row: the number of records
	// inserted, and lock_timeout.
	ClaimJoined string

	// Look reads the record. Parameters: message id, consumer. It returns no row, or one with two booleans: whether the
	// message was processed (false: somebody holds it), and whether the running transaction wrote the row.
	Look string

	// LookMany is Look for several messages: $1 is an array of message ids. It returns a row for each record that is there,
	// with the message id and the columns of Look.
	LookMany string

	// Mark marks the transaction of a message without an id, as Claim does for the others.
	// Parameter: idle_in_transaction_session_timeout.
	Mark string

	// Delete removes the record of a processed message and leaves one alone that somebody holds. Parameters: message id,
	// consumer. It returns one row when it removed one.
	Delete string

	// DeleteMany removes the records of several messages, which are the running transaction's own. Parameters: array of
	// message ids, consumer.
	DeleteMany string
}

// New renders the statements for the table of that name.
func New(schema, table string) Statements {
	r := strings.NewReplacer("{table}", Qualify(schema, table))
	const key = " WHERE message_id = $1::text AND consumer = $2::text"
	const keys = " WHERE message_id = ANY ($1::text[]) AND consumer = $2::text"
	return Statements{
		Claim:       r.Replace(claim(setsMark, insertOne, claimed)),
		Pipeline:    r.Replace(claim(setsMark, insertOne, claimedOrFail)),
		ClaimMany:   r.Replace(claim(setsMark, insertMany, claimedMany)),
		ClaimJoined: r.Replace(claim("", insertOne, counted)),
		Look:        r.Replace("SELECT " + found + "\nFROM {table}" + key),
		LookMany:    r.Replace("SELECT message_id, " + found + "\nFROM {table}" + keys),
		Mark:        mark,
		Delete:      r.Replace("DELETE FROM {table}" + key + " AND processed_at IS NOT NULL RETURNING 1"),
		DeleteMany:  r.Replace("DELETE FROM {table}" + keys),
	}
}

// claim renders a claim of this form.
func claim(marks, insert, final string) string {
	return strings.NewReplacer("{marks}", marks, "{insert}", insert, "{final}", final).Replace(claimForm)
}

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
const AssertMark = `SELECT (CASE WHEN coalesce(current_setting('txidem.claim', true), '') <> '' THEN '1'
  ELSE '` + GuardText + `' END)::int`

// GuardText is found in the error of AssertMark when the transaction is not the one that was begun.
const GuardText = "txidem: not the transaction of the claim"

// NotClaimedText is found in the error of Pipeline when it made no record.
const NotClaimedText = "txidem: not claimed, a duplicate most likely"

// The claim has one form, of three common table expressions and a final SELECT. "kept" reads the session's settings,
// "bounded" replaces them, and "claim" inserts: it reads from bounded, which reads from kept, so that they run in this
// order, before the INSERT reaches the key. The final SELECT needs what was claimed, so that it runs after the INSERT; it
// puts lock_timeout back. Settings and arithmetic are in CTEs of their own, and the INSERT returns nothing that needs
// them, since on a distributed engine the INSERT runs on another server.
//
// Lock relied on: the unique index makes a second INSERT of a key wait for the transaction that inserted it first.
const claimForm = `WITH kept AS MATERIALIZED (
  SELECT current_setting('lock_timeout') AS lock_timeout, current_setting('idle_in_transaction_session_timeout') AS idle
),
bounded AS MATERIALIZED (
  SELECT set_config('lock_timeout', $3::text, true), lock_timeout{marks}
  FROM kept
),
claim AS (
  {insert}
)
{final}`

// setMark marks the transaction as the one of a claim.
const setMark = `set_config('txidem.claim', '1', true) AS mark`

// setIdle bounds how long the transaction may be idle: by {idle}, or by what the session has when that is stricter. 0 means
// no limit to the server.
const setIdle = `set_config('idle_in_transaction_session_timeout',
    CASE WHEN kept.idle <> '0' AND kept.idle::interval < {idle}::interval THEN kept.idle ELSE {idle} END, true) AS idle`

// setsMark is both, in a claim, and mark in a statement of its own.
var (
	setsMark = ",\n    " + setMark + ",\n    " + strings.ReplaceAll(setIdle, "{idle}", "$4::text")
	mark     = "SELECT " + setMark + ",\n  " + strings.ReplaceAll(setIdle, "{idle}", "$1::text") + `
FROM (SELECT current_setting('idle_in_transaction_session_timeout') AS idle) AS kept`
)

// insertOne claims a message.
const insertOne = `INSERT INTO {table} (message_id, consumer, processed_at)
  SELECT $1::text, $2::text, now() FROM bounded
  ON CONFLICT (message_id, consumer) DO NOTHING
  RETURNING 1`

// insertMany claims in the order of the array, so that of two transactions that claim several ids in common one waits for
// the other at the first of these, and they cannot deadlock.
const insertMany = `INSERT INTO {table} (message_id, consumer, processed_at)
  SELECT given.id, $2::text, now() FROM bounded, unnest($1::text[]) AS given (id)
  ON CONFLICT (message_id, consumer) DO NOTHING
  RETURNING message_id`

// The final SELECTs. claimedOrFail makes an error of a claim without a row: its text is cast when the row is computed, not
// when the statement is planned, since the CASE depends on a count.
const (
	claimed = `SELECT ` + restore + countedClaim + `
WHERE claimed.n = 1`

	claimedOrFail = `SELECT (CASE WHEN claimed.n = 1 THEN '1' ELSE '` + NotClaimedText + `' END)::int,
  ` +
		restore + countedClaim

	claimedMany = `SELECT claimed.ids, ` + restore + `
FROM (SELECT array_agg(message_id) AS ids FROM claim) AS claimed, bounded`

	counted = `SELECT claimed.n, ` + restore + countedClaim

	restore      = `set_config('lock_timeout', bounded.lock_timeout, true)`
	countedClaim = `
FROM (SELECT count(*) AS n FROM claim) AS claimed, bounded`
)

// found tells our own uncommitted row from one that another transaction committed: a row that is visible while its
// transaction is in progress can only be ours. The arithmetic widens the 32-bit xmin to the epoch of the snapshot's xmax,
// which is right for a row that is not older than two billion transactions: one of the last hour, as each of ours is, since
// its time is that of the beginning of its transaction. The clocks of a distributed engine may differ by less than that.
const found = `processed_at IS NOT NULL,
  CASE WHEN processed_at > now() - interval '1 hour' THEN
    txid_status(txid_snapshot_xmax(txid_current_snapshot())
      - ((txid_snapshot_xmax(txid_current_snapshot()) - xmin::text::bigint + 2147483648) & 4294967295)
      + 2147483648) = 'in progress'
  ELSE false END`
