package integration

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/integration/testdb"
	"github.com/txidem/txidem-go/migrations"
)

func TestMain(m *testing.M) {
	testdb.Main(m, testdb.Config{Setup: setup})
}

// setup makes what every test's database has: the record table and the business table.
func setup(ctx context.Context, conn *pgx.Conn) error {
	if _, err := migrations.Apply(ctx, conn, nil); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, `CREATE TABLE biz (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text)`)
	return err
}
