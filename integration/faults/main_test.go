package faults

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/integration/testdb"
	"github.com/txidem/txidem-go/migrations"
)

func TestMain(m *testing.M) {
	testdb.Main(m, testdb.Config{Setup: setup, Finish: func() { report.print(os.Stdout) }})
}

// setup makes what every database of the suite has: the record table and the effects.
func setup(ctx context.Context, conn *pgx.Conn) error {
	if _, err := migrations.Apply(ctx, conn, nil); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, effectsTable)
	return err
}

// effectsTable holds what handlers do. Nothing in it keeps an effect from being doubled: that is what is counted. A parent
// that does not exist fails at COMMIT, and makes nobody wait.
const effectsTable = `
CREATE TABLE parents (id int PRIMARY KEY);
CREATE TABLE effects (
	message_id text NOT NULL,
	part       text NOT NULL,
	parent     int REFERENCES parents DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX ON effects (message_id)`
