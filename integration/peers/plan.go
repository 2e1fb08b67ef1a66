package main

import "time"

// plan says how much is measured.
type plan struct {
	rounds int           // turns of each contender, with and without the disk's wait
	slice  time.Duration // about as long as a turn
	copies int           // of one message at once
	pause  time.Duration // what the handler takes when copies come at once
}

// fullPlan is for two minutes.
func fullPlan() plan {
	return plan{rounds: 50, slice: 80 * time.Millisecond, copies: 24, pause: 20 * time.Millisecond}
}
