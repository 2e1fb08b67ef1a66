package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/internal/sqlgen"
	"github.com/txidem/txidem-go/migrations"
)

// idKind is how the ids of a table are made.
type idKind string

const (
	random  idKind = "random"
	ordered idKind = "time-ordered"
)

// claimTable is a record table that claims are measured in.
type claimTable struct {
	name    string
	ids     idKind
	records int // before the first claim
	claim   string
	last    string // the id of the newest record, which makes a duplicate
}

func newClaimTable(ids idKind, records int) *claimTable {
	name := fmt.Sprintf("bench_%s_%d", map[idKind]string{random: "v4", ordered: "v7"}[ids], records)
	return &claimTable{name: name, ids: ids, records: records, claim: sqlgen.New(sqlgen.DefaultSchema, name).Claim}
}

// fresh makes a new id.
func (t *claimTable) fresh() (string, error) {
	if t.ids == random {
		return uuid.NewString(), nil
	}
	id, err := uuid.NewV7()
	return id.String(), err
}

// fillStep is how many records a transaction of the filling inserts, in the order of their ids: random ones would touch a
// page of the index for each record and, in a large table, write most of these pages to the WAL as images.
const fillStep = 1_000_000

// The ids of filled tables. Those of version 7 count milliseconds up to now, so that new ones come after them.
var fillID = map[idKind]string{
	random: `gen_random_uuid()::text`,
	ordered: `(SELECT substr(ms, 1, 8) || '-' || substr(ms, 9, 4) || '-7' || substr(gen_random_uuid()::text, 16)
  FROM lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint - $4::int + n), 12, '0') AS ms)`,
}

// make creates the table and fills it. Autovacuum stays away, since it would come while some table or other is measured.
func (t *claimTable) make(ctx context.Context, l *lab) error {
	if _, err := migrations.Apply(ctx, l.own, &migrations.Config{Table: t.name}); err != nil {
		return err
	}
	if err := l.exec(ctx, `ALTER TABLE `+t.name+` SET (autovacuum_enabled = off)`); err != nil {
		return err
	}
	fill := `INSERT INTO ` + t.name + ` (message_id, consumer, processed_at)
SELECT ` + fillID[t.ids] + `, $1::text, now() FROM generate_series($2::int, $3::int) AS n WHERE n <= $4::int ORDER BY 1`
	for n := 1; n <= t.records; n += fillStep {
		if err := l.exec(ctx, fill, consumer, n, min(n+fillStep-1, t.records), t.records); err != nil {
			return fmt.Errorf("fill %s: %w", t.name, err)
		}
		l.say("%s: %d of %d records", t.name, min(n+fillStep-1, t.records), t.records)
	}
	return nil
}

// The bounds that the library puts into a claim by default.
const (
	claimWait = "5000ms"
	claimIdle = "5min"
)

// timed claims a new id in a transaction and returns how long the claim alone took.
func (t *claimTable) timed(ctx context.Context, tx pgx.Tx) (time.Duration, error) {
	id, err := t.fresh()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	tag, err := tx.Exec(ctx, t.claim, id, consumer, claimWait, claimIdle)
	took := time.Since(start)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("a new id was not claimed in %s", t.name)
	}
	t.last = id
	return took, err
}

// walUse is what EXPLAIN says about a statement's WAL.
type walUse struct {
	Bytes  float64 `json:"WAL Bytes"`
	Images float64 `json:"WAL FPI"` // full-page images
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// explained claims an id under EXPLAIN, which counts the WAL of this statement and of no other session.
func (t *claimTable) explained(ctx context.Context, db querier, id string) (walUse, error) {
	var plan []byte
	err := db.QueryRow(ctx, `EXPLAIN (ANALYZE, WAL, FORMAT JSON) `+t.claim, id, consumer, claimWait, claimIdle).Scan(&plan)
	if err != nil {
		return walUse{}, err
	}
	var statements []struct{ Plan walUse }
	if err := json.Unmarshal(plan, &statements); err != nil {
		return walUse{}, fmt.Errorf("read the plan of a claim: %w", err)
	}
	return statements[0].Plan, nil
}
