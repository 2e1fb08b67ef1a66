package faults

import (
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/txidem/txidem-go/integration/testdb"
)

// modelBench is what the checks of one test share. Each check has messages of its own, which is cheaper than a database.
type modelBench struct {
	workers []*modelWorker
	side    *pgxpool.Pool
	checks  int
	ran     map[string]int
}

func newModelBench(t *testing.T) *modelBench {
	t.Helper()
	db := testdb.New(t)
	prepare(t, db.DSN())
	b := &modelBench{side: db.Pool(t), ran: map[string]int{}}
	_, err := b.side.Exec(t.Context(), `CREATE INDEX ON debits (message_id); CREATE INDEX ON credits (message_id)`)
	require.NoError(t, err)
	for range 3 {
		b.workers = append(b.workers, newModelWorker(t, db.DSN()))
	}
	return b
}

func (b *modelBench) machine() *machine {
	b.checks++
	return &machine{
		workers: b.workers, side: b.side, prefix: fmt.Sprintf("check-%d-", b.checks),
		messages: map[string]*modelState{}, ran: b.ran,
	}
}

// Random schedules of deliveries that end in every way, of copies in flight, joined claims, Forget, Seen and Remember, by
// three workers: after each command the outcome and the database are what a model of two numbers for each message says.
func TestModel(t *testing.T) {
	setFlags(t, map[string]string{"rapid.checks": strconv.Itoa(size(t, envChecks, 60))})
	b := newModelBench(t)
	rapid.Check(t, func(t *rapid.T) {
		m := b.machine()
		defer m.close()
		t.Repeat(m.actions())
	})
	for _, e := range modelEndings {
		require.Positive(t, b.ran[string(e)], "deliveries that ended: %s", e)
		if e != endsWell {
			report.injected(transactional, "model check", e.point(), b.ran[string(e)])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.ran)) {
		t.Logf("%-20s %d", name, b.ran[name])
	}
}

// A model that is wrong in one place, a message whose handler failed counts as processed, is found out: the checks of
// TestModel can fail.
func TestWrongModelIsFoundOut(t *testing.T) {
	setFlags(t, map[string]string{"rapid.checks": "60", "rapid.nofailfile": "true", "rapid.shrinktime": "1ms"})
	b := newModelBench(t)
	found := &verdict{TB: t}
	done := make(chan struct{})
	go func() { // FailNow ends the goroutine
		defer close(done)
		rapid.Check(found, func(t *rapid.T) {
			m := b.machine()
			m.wrong = true
			defer m.close()
			t.Repeat(m.actions())
		})
	}()
	<-done
	require.True(t, found.failed, "the wrong model passed")
	require.Contains(t, found.said.String(), "debits, credits and record of check-", "it failed for another reason")
}

// verdict takes the place of a test that is meant to fail.
type verdict struct {
	testing.TB
	failed bool
	said   strings.Builder
}

func (v *verdict) Log(args ...any)                 { fmt.Fprintln(&v.said, args...) }
func (v *verdict) Logf(format string, args ...any) { fmt.Fprintf(&v.said, format+"\n", args...) }
func (v *verdict) Failed() bool                    { return v.failed }
func (v *verdict) Fail()                           { v.failed = true }

func (v *verdict) FailNow() {
	v.Fail()
	runtime.Goexit()
}

func (v *verdict) Error(args ...any) {
	v.Log(args...)
	v.Fail()
}

func (v *verdict) Errorf(format string, args ...any) {
	v.Logf(format, args...)
	v.Fail()
}

func (v *verdict) Fatal(args ...any) {
	v.Log(args...)
	v.FailNow()
}

func (v *verdict) Fatalf(format string, args ...any) {
	v.Logf(format, args...)
	v.FailNow()
}

// setFlags changes flags for the time of a test, which must not be parallel.
func setFlags(t *testing.T, values map[string]string) {
	t.Helper()
	for name, value := range values {
		before := flag.Lookup(name).Value.String()
		require.NoError(t, flag.Set(name, value))
		t.Cleanup(func() { _ = flag.Set(name, before) })
	}
}
