package demo

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/txidem/txidem-go/examples/payments/payment"
)

const (
	accounts     = 50
	maxCents     = 20_000
	copyOdds     = 8  // one message in so many is published twice, on average
	maxCopyDelay = 16 // how many other messages come at most between the two copies
)

// Plan is everything that the seed decides, the same for all three runs. What it cannot decide is how the operating
// system schedules the workers, so the numbers of two runs with one seed are alike and not equal.
type Plan struct {
	Commands []payment.Command // one for each message
	Order    []int             // indexes of Commands as they are published; some occur twice
	Kills    []Kill            // in the order in which they become due
}

// NewPlan draws a plan.
func NewPlan(seed uint64, messages, kills int) Plan {
	rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is to be repeated
	p := Plan{Commands: make([]payment.Command, messages)}
	for i := range p.Commands {
		p.Commands[i] = payment.Command{
			MessageID:   uuid(rng),
			Account:     fmt.Sprintf("customer-%02d", rng.IntN(accounts)),
			AmountCents: 1 + rng.Int64N(maxCents),
		}
	}
	p.Order = publishOrder(rng, messages)
	p.Kills = drawKills(rng, kills, len(p.Order))
	return p
}

// publishOrder lets a producer that did not see its ack publish a message again, a few messages later.
func publishOrder(rng *rand.Rand, messages int) []int {
	type publication struct{ message, at int }
	var all []publication
	for i := range messages {
		all = append(all, publication{message: i, at: i})
		if rng.IntN(copyOdds) == 0 {
			all = append(all, publication{message: i, at: i + rng.IntN(maxCopyDelay+1)})
		}
	}
	slices.SortStableFunc(all, func(a, b publication) int { return cmp.Compare(a.at, b.at) })
	order := make([]int, len(all))
	for i, p := range all {
		order[i] = p.message
	}
	return order
}

// Bodies returns the envelopes in the order of publication. Both copies of a message are the same bytes.
func (p Plan) Bodies(now time.Time) ([][]byte, error) {
	encoded := make([][]byte, len(p.Commands))
	for i, cmd := range p.Commands {
		body, err := cmd.Encode(cmd.MessageID, now)
		if err != nil {
			return nil, err
		}
		encoded[i] = body
	}
	bodies := make([][]byte, len(p.Order))
	for i, message := range p.Order {
		bodies[i] = encoded[message]
	}
	return bodies, nil
}

// OrderedCents returns what all commands together order to charge.
func (p Plan) OrderedCents() int64 {
	var sum int64
	for _, cmd := range p.Commands {
		sum += cmd.AmountCents
	}
	return sum
}

// uuid draws a random UUID.
func uuid(rng *rand.Rand) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], rng.Uint64())
	binary.BigEndian.PutUint64(b[8:], rng.Uint64())
	b[6] = b[6]&0x0f | 0x40 // version 4
	b[8] = b[8]&0x3f | 0x80 // variant of RFC 9562
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
