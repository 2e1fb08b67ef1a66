package faults

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/migrations"
)

const consumer = "ledger"

// effectTables hold the effect of a message: one row in each. Neither has a unique key, so that nothing but txidem keeps
// a second effect out, and half an effect can be told from a whole one.
const effectTables = `
CREATE TABLE IF NOT EXISTS debits (message_id text NOT NULL);
CREATE TABLE IF NOT EXISTS credits (message_id text NOT NULL)`

// prepare makes the record table and the effect tables.
func prepare(t *testing.T, dsn string) {
	t.Helper()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = migrations.Apply(ctx, conn, nil)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, effectTables)
	require.NoError(t, err)
}

func debit(ctx context.Context, tx pgx.Tx, id string) error {
	_, err := tx.Exec(ctx, `INSERT INTO debits (message_id) VALUES ($1)`, id)
	return err
}

func credit(ctx context.Context, tx pgx.Tx, id string) error {
	_, err := tx.Exec(ctx, `INSERT INTO credits (message_id) VALUES ($1)`, id)
	return err
}

// account is what a database holds of the messages: how many rows each id has in each table.
type account struct {
	debits, credits, records map[string]int
}

func readAccount(ctx context.Context, pool *pgxpool.Pool) (account, error) {
	var a account
	for _, table := range []struct {
		counts *map[string]int
		name   string
	}{{&a.debits, "debits"}, {&a.credits, "credits"}, {&a.records, "txidem_messages"}} {
		rows, err := pool.Query(ctx, `SELECT message_id, count(*) FROM `+table.name+` GROUP BY message_id`)
		if err != nil {
			return a, err
		}
		*table.counts = map[string]int{}
		var id string
		var n int
		if _, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error {
			(*table.counts)[id] = n
			return nil
		}); err != nil {
			return a, err
		}
	}
	return a, nil
}

// findings are the messages for which something is wrong, by what it is.
type findings struct {
	lost      []string // acked, and without an effect
	doubled   []string // more than one effect
	half      []string // one table has a row that the other lacks
	unmatched []string // an effect without a record, or a record without an effect
}

func (f findings) String() string {
	return fmt.Sprintf("%d lost, %d doubled, %d half, %d unmatched", len(f.lost), len(f.doubled), len(f.half), len(f.unmatched))
}

func (f findings) none() bool {
	return len(f.lost)+len(f.doubled)+len(f.half)+len(f.unmatched) == 0
}

// audit compares the database with what the broker was told. Without records the unmatched ones are not looked for.
func (a account) audit(acked []string, records bool) findings {
	var f findings
	for _, id := range acked {
		if a.debits[id] == 0 && a.credits[id] == 0 {
			f.lost = append(f.lost, id)
		}
	}
	for id := range union(a.debits, a.credits, a.records) {
		debits, credits := a.debits[id], a.credits[id]
		if debits > 1 || credits > 1 {
			f.doubled = append(f.doubled, id)
		}
		if debits != credits {
			f.half = append(f.half, id)
		}
		if records && a.records[id] != max(debits, credits) {
			f.unmatched = append(f.unmatched, id)
		}
	}
	return f
}

func union(counts ...map[string]int) map[string]bool {
	all := map[string]bool{}
	for _, c := range counts {
		for id := range c {
			all[id] = true
		}
	}
	return all
}

// requireExactlyOnce asserts that the acked messages have one effect each, that every effect is whole and has its record,
// and that nothing else has an effect. What it finds is reported under the fault.
func requireExactlyOnce(t *testing.T, fault string, pool *pgxpool.Pool, acked []string) {
	t.Helper()
	a, err := readAccount(context.WithoutCancel(t.Context()), pool)
	require.NoError(t, err)
	f := a.audit(acked, true)
	report.doubled(transactional, fault, len(f.doubled))
	report.lost(transactional, fault, len(f.lost))
	require.True(t, f.none(), "%v: %+v", f, f)
	require.Len(t, a.debits, len(acked), "messages with an effect")
}

// The audit finds each thing that it looks for.
func TestAuditFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	a := account{
		debits:  map[string]int{"whole": 1, "twice": 2, "half": 1, "bare": 1},
		credits: map[string]int{"whole": 1, "twice": 2, "bare": 1},
		records: map[string]int{"whole": 1, "twice": 1, "half": 1, "empty": 1},
	}
	f := a.audit([]string{"whole", "twice", "half", "bare", "gone"}, true)
	require.Equal(t, []string{"gone"}, f.lost)
	require.Equal(t, []string{"twice"}, f.doubled)
	require.Equal(t, []string{"half"}, f.half)
	require.ElementsMatch(t, []string{"twice", "bare", "empty"}, f.unmatched)
	require.False(t, f.none())
}
