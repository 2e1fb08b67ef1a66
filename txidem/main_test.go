package txidem_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// dsnVariable names the database that the examples run in. They drop and make tables there.
const dsnVariable = "TXIDEM_EXAMPLE_DSN"

// TestMain leaves out the examples where there is no server for them. The suite in integration runs them on its own.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(dsnVariable) == "" {
		fmt.Println("txidem: the examples are left out: they need a database of their own in " + dsnVariable)
		skip := flag.Lookup("test.skip").Value
		_ = skip.Set(strings.TrimPrefix(skip.String()+"|^Example", "|"))
	}
	os.Exit(m.Run())
}
