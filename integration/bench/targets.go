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
	Missing  string  `json:"missing,omitempty"` // why it was not measured
}

func (t Target) verdict() string {
	switch {
	case !t.Measured:
		return t.Missing
	case t.Reached:
		return "reached"
	}
	return "not reached"
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

func (r *Report) targets() []Target {
	var all []Target
	add := func(number int, what string, rule rule, limit float64, f reading) {
		reached := f.ok() && rule.holds(f.value, limit)
		all = append(all, Target{number, what, rule, limit, f.value, f.ok(), reached, f.missing})
	}
	add(1, "Process: round trips", exactly, 3, r.trips(processName))
	add(1, "Process ÷ plain, processor time", atMost, 1.20, r.processor(processName, toPlain))
	add(2, "Pipeline: round trips", exactly, 1, r.trips(pipelineName))
	add(2, "Pipeline ÷ plain, processor time", atMost, 0.58, r.processor(pipelineName, toPlain))
	add(3, "WrapBatch of 100: round trips", exactly, 3, r.trips(batchName(100)))
	add(3, "WrapBatch of 100 ÷ 100 rows in one plain transaction, processor time", atMost, 2,
		r.processor(batchName(100), toRows))
	add(4, "Process ÷ plain, messages a second, 16 workers that saturate the processors", atLeast, 0.85,
		r.rate(16, processName))
	for _, ids := range []idKind{random, ordered} {
		c, ok := r.claims(0, ids, later)
		add(5, "WAL bytes of a claim without full-page images, "+string(ids)+" ids", atMost, 340, known(c.BytesWithout, ok))
		add(5, "WAL bytes of a duplicate, "+string(ids)+" ids", exactly, 0, known(c.Duplicate, ok))
	}
	add(6, "claim in 10 M records ÷ in none, p50, time-ordered ids", atMost, 1.2, r.growth(10_000_000))
	return all
}

// known is a number that this run has, if ok.
func known(value float64, ok bool) reading {
	if !ok {
		return reading{missing: notInThisRun}
	}
	return reading{value: value}
}

func (r *Report) trips(name string) reading {
	c, ok := r.cost(name)
	return known(c.RoundTrips, ok)
}

// processor is what a contender's message takes of the processors with one worker, as a ratio.
func (r *Report) processor(name string, ratio func(Effort) reading) reading {
	e, ok := r.effort(1, name)
	if !ok {
		return known(0, false)
	}
	return ratio(e)
}

func toPlain(e Effort) reading { return e.Ratio }
func toRows(e Effort) reading  { return e.RowsRatio }

// rate is the ratio of a contender's throughput to the plain transaction's, on loopback without the disk's wait.
func (r *Report) rate(workers int, name string) reading {
	e, ok := r.effort(workers, name)
	return known(e.RateRatio, ok)
}

// growth is what a large table makes of the time of a claim.
func (r *Report) growth(records int) reading {
	large, ok := r.claims(records, ordered, later)
	small, okSmall := r.claims(0, ordered, later)
	return known(large.P50/small.P50, ok && okSmall)
}
