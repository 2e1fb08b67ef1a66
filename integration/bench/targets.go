package main

// Target is a figure that the library is to reach.
type Target struct {
	Number   int     `json:"number"` // as the list of targets counts
	What     string  `json:"what"`
	Rule     rule    `json:"rule"`
	Limit    float64 `json:"limit"`
	Figure   float64 `json:"figure"`
	Measured bool    `json:"measured"`
	Reached  bool    `json:"reached"`
}

type rule string

const (
	atMost  rule = "at most"
	atLeast rule = "at least"
	exactly rule = "exactly"
)

func (r rule) holds(figure, limit float64) bool {
	switch r {
	case atMost:
		return figure <= limit
	case atLeast:
		return figure >= limit
	default:
		return figure == limit
	}
}

// figure is a number that this run may not have measured.
type figure struct {
	value    float64
	measured bool
}

func (r *Report) targets() []Target {
	var all []Target
	add := func(number int, what string, rule rule, limit float64, f figure) {
		all = append(all, Target{number, what, rule, limit, f.value, f.measured, f.measured && rule.holds(f.value, limit)})
	}
	add(1, "Process: round trips", exactly, 3, r.trips(processName))
	add(1, "Process ÷ plain, p50, 1 ms", atMost, 1.05, r.p50(oneMilli, processName, plainName))
	add(1, "Process ÷ plain, p50, loopback, fsync on", atMost, 1.15, r.p50(loopback, processName, plainName))
	add(1, "Process ÷ plain, p50, loopback, synchronous_commit=off", atMost, 1.25, r.p50(asyncLoop, processName, plainName))
	add(2, "Pipeline: round trips", exactly, 1, r.trips(pipelineName))
	add(2, "Pipeline ÷ plain, p50, 1 ms", atMost, 0.40, r.p50(oneMilli, pipelineName, plainName))
	add(2, "Pipeline ÷ plain, p50, loopback, fsync on", atMost, 0.80, r.p50(loopback, pipelineName, plainName))
	add(2, "Pipeline ÷ plain, p50, loopback, synchronous_commit=off", atMost, 0.55, r.p50(asyncLoop, pipelineName, plainName))
	add(2, "Pipeline ÷ autocommit, p50, 1 ms", atMost, 1.10, r.p50(oneMilli, pipelineName, autocommitName))
	for _, at := range []place{loopback, oneMilli} {
		add(3, "WrapBatch of 100 ÷ plain, messages a second, 1 worker, "+at.Name, atLeast, 20, r.rate(at, 1, batchName(100)))
		add(3, "WrapBatch of 100 ÷ plain, messages a second, 16 workers, "+at.Name, atLeast, 8, r.rate(at, 16, batchName(100)))
	}
	for _, at := range []place{loopback, oneMilli} {
		add(4, "Process ÷ plain, messages a second, 16 workers, "+at.Name, atLeast, 0.90, r.rate(at, 16, processName))
	}
	for _, ids := range []idKind{random, ordered} {
		c, ok := r.claims(0, ids, later)
		add(5, "WAL bytes of a claim without full-page images, "+string(ids)+" ids", atMost, 340, figure{c.BytesWithout, ok})
		add(5, "WAL bytes of a duplicate, "+string(ids)+" ids", exactly, 0, figure{c.Duplicate, ok})
	}
	add(6, "claim in 10 M records ÷ in none, p50, time-ordered ids", atMost, 1.2, r.growth(10_000_000))
	return all
}

func (r *Report) trips(name string) figure {
	c, ok := r.cost(name)
	return figure{c.RoundTrips, ok}
}

// p50 is the ratio of two contenders' with one worker.
func (r *Report) p50(at place, name, limit string) figure {
	f, ok := r.figures(at, 1, name)
	base, okBase := r.figures(at, 1, limit)
	if !ok || !okBase {
		return figure{}
	}
	return figure{f.P50 / base.P50, true}
}

// rate is the ratio of a contender's throughput to the plain transaction's.
func (r *Report) rate(at place, workers int, name string) figure {
	f, ok := r.figures(at, workers, name)
	return figure{f.RateRatio, ok}
}

// growth is what a large table makes of the time of a claim.
func (r *Report) growth(records int) figure {
	large, ok := r.claims(records, ordered, later)
	small, okSmall := r.claims(0, ordered, later)
	if !ok || !okSmall {
		return figure{}
	}
	return figure{large.P50 / small.P50, true}
}
