package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/integration/testdb"
	"github.com/txidem/txidem-go/txidem"
)

// verb is an operation of a history.
type verb string

const (
	verbProcess  verb = "process"  // a handler that succeeds
	verbFail     verb = "fail"     // a handler that returns an error
	verbForget   verb = "forget"   //
	verbRemember verb = "remember" //
	verbSeen     verb = "seen"     //
)

// request and response are one operation, as the checker sees it.
type request struct {
	verb verb
	id   string
}

type response string

const (
	saidProcessed response = "processed"
	saidDuplicate response = "duplicate"
	saidFailed    response = "failed"    // the handler ran and returned its error
	saidDone      response = "done"      // Forget, Remember
	saidSeen      response = "seen"      //
	saidUnseen    response = "unseen"    //
	saidInFlight  response = "in flight" // nothing was done
)

// registers is what the operations must look like when each of them took place at one moment between its call and its
// return: for every message a register that is free or taken. Messages are independent of each other.
func registers() porcupine.Model {
	return porcupine.Model{
		Partition: byMessage,
		Init:      func() any { return false },
		Step: func(state, input, output any) (bool, any) {
			return step(state.(bool), input.(request).verb, output.(response))
		},
		DescribeOperation: func(input, output any) string {
			r := input.(request)
			return fmt.Sprintf("%s(%s) → %s", r.verb, r.id, output)
		},
	}
}

// step says whether an operation may answer that in a state, and which state follows.
func step(taken bool, v verb, said response) (legal bool, after bool) {
	if said == saidInFlight {
		return v != verbSeen, taken
	}
	switch v {
	case verbProcess:
		return taken == (said == saidDuplicate), true
	case verbFail:
		return taken == (said == saidDuplicate), taken
	case verbForget:
		return said == saidDone, false
	case verbRemember:
		return said == saidDone, true
	default:
		return taken == (said == saidSeen), taken
	}
}

func byMessage(history []porcupine.Operation) [][]porcupine.Operation {
	parts := map[string][]porcupine.Operation{}
	for _, op := range history {
		id := op.Input.(request).id
		parts[id] = append(parts[id], op)
	}
	var all [][]porcupine.Operation
	for _, part := range parts {
		all = append(all, part)
	}
	return all
}

// recorder runs operations and writes down when they were called and when they returned.
type recorder struct {
	pool  *pgxpool.Pool
	start time.Time
	mu    sync.Mutex
	all   []porcupine.Operation
	count map[response]int
}

func (r *recorder) run(client int, g *txidem.Guard, req request) error {
	called := time.Since(r.start)
	said, err := perform(context.Background(), g, req)
	returned := time.Since(r.start)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, porcupine.Operation{
		ClientId: client, Input: req, Call: int64(called), Output: said, Return: int64(returned),
	})
	r.count[said]++
	return err
}

// perform runs one operation. An answer that no operation may give is an error.
func perform(ctx context.Context, g *txidem.Guard, req request) (response, error) {
	switch req.verb {
	case verbForget:
		return answered(saidDone, g.Forget(ctx, req.id))
	case verbRemember:
		return answered(saidDone, g.Remember(ctx, req.id))
	case verbSeen:
		seen, err := g.Seen(ctx, req.id)
		if seen {
			return answered(saidSeen, err)
		}
		return answered(saidUnseen, err)
	default:
		return deliverOnce(ctx, g, req)
	}
}

// deliverOnce runs a delivery whose handler succeeds or fails, as the request has it.
func deliverOnce(ctx context.Context, g *txidem.Guard, req request) (response, error) {
	outcome, err := g.Process(ctx, req.id, func(ctx context.Context, tx pgx.Tx) error {
		err := transfer(ctx, tx, req.id)
		if err == nil && req.verb == verbFail {
			return errModel
		}
		return err
	})
	if errors.Is(err, errModel) {
		return saidFailed, nil
	}
	return answered(response(outcome.String()), err)
}

// answered is what an operation said without an error, or that it did nothing. A claim that finds the key taken
// and then no record, since somebody forgets it at that moment, does nothing either (ErrNoRecord).
func answered(said response, err error) (response, error) {
	if errors.Is(err, txidem.ErrInFlight) || errors.Is(err, txidem.ErrNoRecord) {
		return saidInFlight, nil
	}
	return said, err
}

// recordHistory records what twelve clients do to four messages at once, a few of which all want the same one.
func recordHistory(t *testing.T, operations int) *recorder {
	t.Helper()
	const clients = 12
	db := testdb.New(t)
	prepare(t, db.DSN())
	pool := newPool(t, db.DSN())
	guards := []*txidem.Guard{
		newGuard(t, pool), // waits for a copy in flight
		newGuard(t, pool, func(c *txidem.Config) { c.InFlightWait = time.Millisecond }),
	}
	r := &recorder{pool: pool, start: time.Now(), count: map[response]int{}}
	errs := make(chan error, clients)
	for client := range clients {
		go func() {
			var err error
			for range operations / clients {
				err = errors.Join(err, r.run(client, guards[rand.IntN(len(guards))], randomRequest()))
			}
			errs <- err
		}()
	}
	for range clients {
		require.NoError(t, <-errs)
	}
	return r
}

func randomRequest() request {
	verbs := []verb{verbProcess, verbProcess, verbProcess, verbFail, verbForget, verbForget, verbRemember, verbSeen}
	return request{verb: verbs[rand.IntN(len(verbs))], id: fmt.Sprint("m", rand.IntN(4))}
}

// The answers to concurrent claims, and to Forget, Remember and Seen among them, are those of operations that take place one
// after the other, each at some moment between its call and its return.
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	r := recordHistory(t, 1200)
	t.Logf("%d operations: %v", len(r.all), r.count)
	for _, said := range []response{saidProcessed, saidDuplicate, saidFailed, saidInFlight, saidSeen, saidUnseen} {
		require.Positive(t, r.count[said], "answers %q: the history is not worth a check", said)
	}
	require.Len(t, effectsOf(t, r.pool), r.count[saidProcessed], "effects: one for each delivery that was processed")
	require.True(t, overlap(r.all), "no two operations on one message overlapped")
	require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(registers(), r.all, crashStateLimit))

	// The same history with one more delivery at its end that ran twice is none.
	last := int64(time.Since(r.start))
	corrupted := append(r.all,
		porcupine.Operation{Input: request{verbProcess, "m0"}, Output: saidProcessed, Call: last + 1, Return: last + 2},
		porcupine.Operation{Input: request{verbProcess, "m0"}, Output: saidProcessed, Call: last + 3, Return: last + 4})
	require.Equal(t, porcupine.Illegal, porcupine.CheckOperationsTimeout(registers(), corrupted, crashStateLimit))
}

// effectsOf returns the debits, one for each effect.
func effectsOf(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT message_id FROM debits`)
	require.NoError(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return ids
}

// overlap reports whether two operations on one message were under way at once.
func overlap(history []porcupine.Operation) bool {
	for i, a := range history {
		for _, b := range history[i+1:] {
			if a.Input.(request).id == b.Input.(request).id && a.Call < b.Return && b.Call < a.Return {
				return true
			}
		}
	}
	return false
}

// The check finds what it is there to find.
func TestCorruptedHistoriesAreRejected(t *testing.T) {
	t.Parallel()
	sequence := func(ops ...any) []porcupine.Operation {
		var history []porcupine.Operation
		for i := 0; i < len(ops); i += 2 {
			history = append(history, porcupine.Operation{
				Input: request{ops[i].(verb), "m"}, Output: ops[i+1].(response), Call: int64(2 * i), Return: int64(2*i + 1),
			})
		}
		return history
	}
	for name, test := range map[string]struct {
		history []porcupine.Operation
		want    porcupine.CheckResult
	}{
		"processed, duplicate": {sequence(verbProcess, saidProcessed, verbProcess, saidDuplicate), porcupine.Ok},
		"processed twice":      {sequence(verbProcess, saidProcessed, verbProcess, saidProcessed), porcupine.Illegal},
		"processed, forgotten, processed": {
			sequence(verbProcess, saidProcessed, verbForget, saidDone, verbProcess, saidProcessed), porcupine.Ok,
		},
		"processed, forgotten, duplicate": {
			sequence(verbProcess, saidProcessed, verbForget, saidDone, verbProcess, saidDuplicate), porcupine.Illegal,
		},
		"failed, processed":                   {sequence(verbFail, saidFailed, verbProcess, saidProcessed), porcupine.Ok},
		"failed, duplicate":                   {sequence(verbFail, saidFailed, verbProcess, saidDuplicate), porcupine.Illegal},
		"in flight alone changes nothing":     {sequence(verbProcess, saidInFlight, verbSeen, saidSeen), porcupine.Illegal},
		"remembered, unseen":                  {sequence(verbRemember, saidDone, verbSeen, saidUnseen), porcupine.Illegal},
		"processed, and failed in between":    {sequence(verbProcess, saidProcessed, verbFail, saidFailed), porcupine.Illegal},
		"duplicate of nothing, as an ack lie": {sequence(verbProcess, saidDuplicate), porcupine.Illegal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, porcupine.CheckOperationsTimeout(registers(), test.history, crashStateLimit))
		})
	}
}
