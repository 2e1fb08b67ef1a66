package txidem_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/txidem/txidem-go/migrations"
	"github.com/txidem/txidem-go/txidem"
)

// charge is the message of the examples.
type charge struct {
	ID         string
	Account    string
	Cents      int
	Offset     int64
	Deliveries int
}

func (c charge) MessageID() string { return c.ID }

var ctx = context.Background()

// openShop returns a pool on a database with an empty table of charges and txidem's own.
func openShop() *pgxpool.Pool {
	pool, err := pgxpool.New(ctx, os.Getenv(dsnVariable))
	if err != nil {
		log.Fatal(err)
	}
	_, err = pool.Exec(ctx, `DROP TABLE IF EXISTS charges, txidem_messages, txidem_messages_migrations;
		CREATE TABLE charges (account text, cents int)`)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := migrations.Apply(ctx, pool, nil); err != nil {
		log.Fatal(err)
	}
	return pool
}

// owed is what all accounts were charged.
func owed(pool *pgxpool.Pool) (cents int) {
	if err := pool.QueryRow(ctx, `SELECT coalesce(sum(cents), 0) FROM charges`).Scan(&cents); err != nil {
		log.Fatal(err)
	}
	return cents
}

func newGuard(pool *pgxpool.Pool) *txidem.Guard {
	guard, err := txidem.New(pool, &txidem.Config{Consumer: "ledger"})
	if err != nil {
		log.Fatal(err)
	}
	return guard
}

func book(ctx context.Context, tx pgx.Tx, c charge) error {
	_, err := tx.Exec(ctx, `INSERT INTO charges (account, cents) VALUES ($1, $2)`, c.Account, c.Cents)
	return err
}

// A Guard is made once, when the program starts, and checked.
func ExampleNew() {
	pool := openShop()
	defer pool.Close()

	guard, err := txidem.New(pool, &txidem.Config{Consumer: "ledger", InFlightWait: 2 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(guard.Check(ctx))
	// Output: <nil>
}

func ExampleGuard_Process() {
	pool := openShop()
	defer pool.Close()
	guard := newGuard(pool)

	for range 2 { // the broker delivers it twice
		outcome, err := guard.Process(ctx, "m-1", func(ctx context.Context, tx pgx.Tx) error {
			return book(ctx, tx, charge{Account: "ada", Cents: 500})
		})
		fmt.Println(outcome, err)
	}
	fmt.Println(owed(pool), "cents")
	// Output:
	// processed <nil>
	// duplicate <nil>
	// 500 cents
}

// A wrapped handler returns nil to have its message acked. What else to tell the broker, Settle knows.
func ExampleWrap() {
	pool := openShop()
	defer pool.Close()

	handle := txidem.Wrap(newGuard(pool), charge.MessageID, func(ctx context.Context, tx pgx.Tx, c charge) error {
		if c.Cents < 0 {
			return txidem.Permanent(errors.New("a charge cannot be negative"))
		}
		return book(ctx, tx, c)
	})
	for _, msg := range []charge{{ID: "m-1", Cents: 500}, {ID: "m-1", Cents: 500}, {ID: "m-2", Cents: -1}} {
		fmt.Println(msg.ID, txidem.Settle(handle(ctx, msg), msg.Deliveries).Action)
	}
	fmt.Println(owed(pool), "cents")
	// Output:
	// m-1 ack
	// m-1 ack
	// m-2 park
	// 500 cents
}

// A handler that knows its statements in advance queues them.
func ExampleWrapPipeline() {
	pool := openShop()
	defer pool.Close()

	handle := txidem.WrapPipeline(newGuard(pool), charge.MessageID, func(_ context.Context, b *pgx.Batch, c charge) error {
		b.Queue(`INSERT INTO charges (account, cents) VALUES ($1, $2)`, c.Account, c.Cents)
		b.Queue(`UPDATE charges SET cents = cents + 1 WHERE account = $1`, c.Account)
		return nil
	})
	fmt.Println(handle(ctx, charge{ID: "m-1", Account: "ada", Cents: 500}))
	fmt.Println(handle(ctx, charge{ID: "m-1", Account: "ada", Cents: 500}))
	fmt.Println(owed(pool), "cents")
	// Output:
	// <nil>
	// <nil>
	// 501 cents
}

func ExampleGuard_Pipeline() {
	pool := openShop()
	defer pool.Close()

	outcome, err := newGuard(pool).Pipeline(ctx, "m-1", func(_ context.Context, b *pgx.Batch) error {
		b.Queue(`INSERT INTO charges (account, cents) VALUES ('ada', 500)`)
		return nil
	})
	fmt.Println(outcome, err, owed(pool), "cents")
	// Output: processed <nil> 500 cents
}

// A broker that acks up to an offset gets the offset of the last message before the first one that is to come again.
func ExampleWrapBatch() {
	pool := openShop()
	defer pool.Close()

	handle := txidem.WrapBatch(newGuard(pool), charge.MessageID, func(ctx context.Context, tx pgx.Tx, fresh []charge) error {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"charges"}, []string{"account", "cents"},
			pgx.CopyFromSlice(len(fresh), func(i int) ([]any, error) { return []any{fresh[i].Account, fresh[i].Cents}, nil }))
		return err
	})
	msgs := []charge{
		{ID: "m-1", Account: "ada", Cents: 500, Offset: 1},
		{ID: "m-1", Account: "ada", Cents: 500, Offset: 2},
		{ID: "m-2\x00", Account: "ada", Cents: 1, Offset: 3}, // an id that cannot be stored
		{ID: "m-3", Account: "bob", Cents: 700, Offset: 4},
	}
	commit := int64(0)
	for i, r := range handle(ctx, msgs) {
		action := txidem.Settle(r.Err, 0).Action
		if action == txidem.Redeliver {
			break
		}
		if action == txidem.Park {
			fmt.Println("parked:", msgs[i].Offset)
		}
		commit = msgs[i].Offset
	}
	fmt.Println("commit offset", commit, "-", owed(pool), "cents")
	// Output:
	// parked: 3
	// commit offset 4 - 1200 cents
}

func ExampleGuard_ProcessBatch() {
	pool := openShop()
	defer pool.Close()

	guard := newGuard(pool)

	results := guard.ProcessBatch(ctx, []string{"a", "b", "a"}, func(ctx context.Context, tx pgx.Tx, fresh []int) error {
		fmt.Println("new:", fresh)
		_, err := tx.Exec(ctx, `INSERT INTO charges (cents) SELECT 100 FROM generate_series(1, $1::int)`, len(fresh))
		return err
	})
	for _, r := range results {
		fmt.Println(r.ID, r.Outcome, r.Err)
	}
	// Output:
	// new: [0 1]
	// a processed <nil>
	// b processed <nil>
	// a duplicate <nil>
}

// The claim joins a transaction that the caller begins and commits.
func ExampleGuard_ClaimTx() {
	pool := openShop()
	defer pool.Close()
	guard := newGuard(pool)

	for range 2 {
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			outcome, err := guard.ClaimTx(ctx, tx, "m-1")
			fmt.Println(outcome, err)
			if err != nil || outcome == txidem.Duplicate {
				return err
			}
			return book(ctx, tx, charge{Account: "ada", Cents: 500})
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(owed(pool), "cents")
	// Output:
	// claimed <nil>
	// duplicate <nil>
	// 500 cents
}

// A program on database/sql needs no pool of pgx.
func ExampleNewSQL() {
	pool := openShop()
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool) // or the one of sql.Open, GORM, bun, sqlx, ent
	defer db.Close()                  //nolint:errcheck // the program ends

	guard, err := txidem.NewSQL(db, &txidem.Config{Consumer: "ledger"})
	if err != nil {
		log.Fatal(err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after Commit
	outcome, err := guard.ClaimSQL(ctx, tx, "m-1")
	if err == nil && outcome != txidem.Duplicate {
		_, err = tx.ExecContext(ctx, `INSERT INTO charges (cents) VALUES (500)`)
	}
	if err == nil {
		err = tx.Commit()
	}
	fmt.Println(outcome, err, owed(pool), "cents")
	// Output: claimed <nil> 500 cents
}

// A handler without a transaction. Its effect should carry the message id as an idempotency key of its own.
func ExampleWrapSeen() {
	pool := openShop()
	defer pool.Close()

	handle := txidem.WrapSeen(newGuard(pool), charge.MessageID, func(_ context.Context, c charge) error {
		fmt.Println("a mail about", c.ID)
		return nil
	})
	fmt.Println(handle(ctx, charge{ID: "m-1"}))
	fmt.Println(handle(ctx, charge{ID: "m-1"}))
	// Output:
	// a mail about m-1
	// <nil>
	// <nil>
}

// An operator has a message processed again.
func ExampleGuard_Forget() {
	pool := openShop()
	defer pool.Close()
	guard := newGuard(pool)
	handle := func(ctx context.Context, tx pgx.Tx) error { return book(ctx, tx, charge{Cents: 500}) }

	fmt.Println(guard.Process(ctx, "m-1", handle))
	fmt.Println(guard.Forget(ctx, "m-1"))
	fmt.Println(guard.Process(ctx, "m-1", handle))
	// Output:
	// processed <nil>
	// <nil>
	// processed <nil>
}

func ExampleObserver() {
	pool := openShop()
	defer pool.Close()

	observe := func(_ context.Context, e txidem.DeliveryEvent) {
		fmt.Println(e.Consumer, e.ID, e.Outcome, e.Attempts, e.Err)
	}
	guard, err := txidem.New(pool, &txidem.Config{Consumer: "ledger", Observer: observe})
	if err != nil {
		log.Fatal(err)
	}
	_, _ = guard.Process(ctx, "m-1", func(context.Context, pgx.Tx) error { return errors.New("no such account") })
	_, _ = guard.Process(ctx, "m-1", func(context.Context, pgx.Tx) error { return nil })
	// Output:
	// ledger m-1 none 1 no such account
	// ledger m-1 processed 1 <nil>
}

// What a consumer tells its broker, from the error and the number of deliveries.
func ExampleSettle() {
	s := txidem.Settle(errors.New("the gateway is away"), 3)
	fmt.Println(s.Action, 2*time.Second <= s.After && s.After <= 4*time.Second)
	s = txidem.Settle(&txidem.InFlightError{ID: "m-1", Wait: 5 * time.Second}, 3)
	fmt.Println(s.Action, s.InFlight)
	// Output:
	// redeliver true
	// redeliver true
}
