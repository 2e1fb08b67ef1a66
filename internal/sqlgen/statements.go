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

	// Join is Claim for a transaction that somebody else owns: whatever it finds, lock_timeout is as before when it
	// returns. Parameters as for Claim. It returns one row with the number of records inserted.
	Join string

	// Look reads the record. Parameters: message id, consumer. It returns no row, or one with two booleans: whether the
	// message was processed (false: the row is a lease), and whether the running transaction wrote the row.
	Look string

	// Mark marks the transaction of a message without an id, as Claim does for the others.
	// Parameter: idle_in_transaction_session_timeout.
	Mark string

	// Delete removes the record of a processed message and leaves a lease alone. Parameters: message id, consumer.
	Delete string
}

// New renders the statements for the table of that name.
func New(schema, table string) Statements {
	r := strings.NewReplacer("{table}", Qualify(schema, table))
	return Statements{
		Mark:   "SELECT kept, idle FROM " + markWith("$1::text"),
		Claim:  r.Replace(strings.ReplaceAll(claim, "{mark}", markWith("$4::text"))),
		Join:   r.Replace(join),
		Look:   r.Replace(look),
		Delete: r.Replace(del),
	}
}

// markWith renders mark with its parameter.
func markWith(idle string) string { return strings.ReplaceAll(mark, "{idle}", idle) }

// Commit ends the transaction that Claim or Mark began, in one message. The mark is a setting that is local to that
// transaction: where it is gone, the transaction was ended behind our back, and whatever is open now is another one. Then
// the cast fails, with GuardText in the error, and COMMIT is not reached.
const Commit = `SELECT (CASE WHEN coalesce(current_setting('txidem.lock_timeout', true), '') <> '' THEN '1'
  ELSE '` + GuardText + `' END)::int; COMMIT`

// GuardText is found in the error of Commit when the transaction is not the one that was begun.
const GuardText = "txidem: not the transaction of the claim"

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

// look tells our own uncommitted row from one that another transaction committed. A row of ours carries our now(); two
// transactions may share a now(), so its xmin must be in progress too, and a visible row in progress can only be ours
// (a savepoint's xmin differs from the transaction's, so xmin alone cannot be compared). The arithmetic widens the
// 32-bit xmin to the epoch of the snapshot's xmax; CASE keeps it from rows too old for that.
const look = `SELECT processed_at IS NOT NULL,
  CASE WHEN processed_at = now() THEN
    (SELECT txid_status(n - ((n - x + 2147483648) & 4294967295) + 2147483648) = 'in progress'
     FROM (SELECT txid_snapshot_xmax(txid_current_snapshot()) AS n, xmin::text::bigint AS x) AS xids)
  ELSE false END
FROM {table} WHERE message_id = $1::text AND consumer = $2::text`

const del = `DELETE FROM {table} WHERE message_id = $1::text AND consumer = $2::text AND processed_at IS NOT NULL`
