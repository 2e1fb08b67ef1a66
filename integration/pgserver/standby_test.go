package pgserver_test

import (
	"context"
	"testing"

	"github.com/txidem/txidem-go/integration/pgserver"
)

// A standby follows its primary, and takes writes once it is promoted.
func TestStandby(t *testing.T) {
	primary, ok := startLocal(t).Local()
	if !ok {
		t.Fatal("not a local server")
	}
	run(t, primary.DSN(), "CREATE TABLE t (id int)")
	standby, err := primary.Standby(t.Context(), pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if got := show(t, standby.DSN(), "transaction_read_only"); got != "on" {
		t.Fatalf("transaction_read_only is %s on the standby", got)
	}
	primary.Kill()
	run(t, standby.DSN(), "SELECT pg_promote()")
	run(t, standby.DSN(), "INSERT INTO t VALUES (1)")
}
