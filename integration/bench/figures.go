package main

import (
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
)

// Figures are a contender's in one cell. Times are of a delivery, in milliseconds.
type Figures struct {
	Contender  string  `json:"contender"`
	Batch      int     `json:"batch"`
	Deliveries int     `json:"deliveries"`
	P50        float64 `json:"p50_ms"`
	P95        float64 `json:"p95_ms"`
	P99        float64 `json:"p99_ms"`
	PerSecond  float64 `json:"messages_per_second"`

	// Against the limits, in the same cell.
	P50Ratio      float64 `json:"p50_to_plain"`
	P50Autocommit float64 `json:"p50_to_autocommit"`
	RateRatio     float64 `json:"messages_per_second_to_plain"`
}

func figuresOf(c contender, s *stretch) Figures {
	f := Figures{Contender: c.name, Batch: c.batch, Deliveries: len(s.times), PerSecond: s.perSecond()}
	f.P50, f.P95, f.P99 = percentiles(s.times)
	return f
}

// relate sets the ratios.
func (f *Figures) relate(plain, autocommit Figures) {
	f.P50Ratio = f.P50 / plain.P50
	f.P50Autocommit = f.P50 / autocommit.P50
	f.RateRatio = f.PerSecond / plain.PerSecond
}

// percentiles returns p50, p95 and p99 in milliseconds.
func percentiles(times []time.Duration) (p50, p95, p99 float64) {
	ms := make([]float64, len(times))
	for i, t := range times {
		ms[i] = t.Seconds() * 1000
	}
	slices.Sort(ms)
	at := func(p float64) float64 { return stat.Quantile(p, stat.Empirical, ms, nil) }
	return at(0.50), at(0.95), at(0.99)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return stat.Quantile(0.5, stat.Empirical, sorted, nil)
}
