package demo

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/txidem/txidem-go/examples/payments/internal/worker"
)

const (
	longestAim    = 10 * time.Millisecond // after a delivery's arrival: anywhere in it, or in the next one
	longestCommit = 2 * time.Millisecond  // after a COMMIT: before the ack, more often than not
)

// Kill is one planned SIGKILL. Half of them are aimed at a moment of a delivery's whole life, the others at what
// matters here, the time after the COMMIT.
type Kill struct {
	After int           // how many deliveries were made by then, in the whole run
	Aim   worker.Stage  // the next worker that reports it is the victim
	Delay time.Duration // from that report to the kill
}

// drawKills spreads the kills over the first four fifths of the deliveries, so that there is work left for the last one
// to hit.
func drawKills(rng *rand.Rand, kills, deliveries int) []Kill {
	plan := make([]Kill, kills)
	for i := range plan {
		plan[i] = Kill{Aim: worker.Received, Delay: time.Duration(rng.Int64N(int64(longestAim)))}
		if rng.IntN(2) == 0 {
			plan[i] = Kill{Aim: worker.Committed, Delay: time.Duration(rng.Int64N(int64(longestCommit)))}
		}
		plan[i].After = 1 + rng.IntN(max(1, deliveries*4/5))
	}
	slices.SortStableFunc(plan, func(a, b Kill) int { return a.After - b.After })
	return plan
}
