package main

import (
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// bar is one line of the chart: the time of a message, where a plain transaction takes 1.
type bar struct {
	name  string
	value float64
}

// bars are those of one worker at 1 ms, from the bottom up.
func (r *Report) bars() []bar {
	var all []bar
	for _, c := range r.Cells {
		if c.Place != oneMilli || c.Workers != 1 || c.Duplicates != 0 || len(all) > 0 {
			continue
		}
		for _, f := range c.Figures {
			all = append([]bar{{f.Contender, f.P50Ratio / float64(f.Batch)}}, all...)
		}
	}
	return all
}

// The chart's colours stand for the kinds of contenders. The background is white, in dark themes as well.
var barColors = []struct {
	kind  string
	color color.Color
}{
	{"no dedupe", color.Gray{150}},
	{"dedupe by hand", color.RGBA{R: 214, G: 96, B: 77, A: 255}},
	{"txidem", color.RGBA{R: 33, G: 113, B: 181, A: 255}},
}

// kindOf is an index of barColors.
func kindOf(contender string) int {
	switch {
	case strings.HasSuffix(contender, "no dedupe"):
		return 0
	case contender == handClaimedName, contender == handSeenName, contender == handRowsName:
		return 1
	default:
		return 2
	}
}

// addBars adds one set of bars for each colour, with zeros where another colour is.
func addBars(p *plot.Plot, bars []bar) error {
	for kind, look := range barColors {
		values := make(plotter.Values, len(bars))
		for i, b := range bars {
			if kindOf(b.name) == kind {
				values[i] = b.value
			}
		}
		chart, err := plotter.NewBarChart(values, barWidth)
		if err != nil {
			return err
		}
		chart.Horizontal, chart.Color, chart.LineStyle.Width = true, look.color, 0
		p.Add(chart)
		p.Legend.Add(look.kind, chart)
	}
	return nil
}

// addLimit marks the time of the plain transaction beside each bar, and not on the lines of the labels.
func addLimit(p *plot.Plot, bars int) error {
	for i := range bars {
		y := float64(i)
		line, err := plotter.NewLine(plotter.XYs{{X: 1, Y: y - 0.25}, {X: 1, Y: y + 0.25}})
		if err != nil {
			return err
		}
		line.Color, line.Dashes = color.Gray{90}, plotutil.Dashes(1)
		p.Add(line)
	}
	return nil
}

// addLabels puts each bar's name and number on a line of their own above it. They begin at the left edge and have the
// whole width, so that they fit in whatever font they are shown.
func addLabels(p *plot.Plot, bars []bar) error {
	at := plotter.XYLabels{XYs: make(plotter.XYs, len(bars)), Labels: make([]string, len(bars))}
	for i, b := range bars {
		at.XYs[i] = plotter.XY{X: 0, Y: float64(i)}
		at.Labels[i] = fmt.Sprintf("%s: %.3g", b.name, b.value)
	}
	labels, err := plotter.NewLabels(at)
	if err != nil {
		return err
	}
	labels.Offset = vg.Point{Y: barWidth/2 + vg.Points(4)}
	p.Add(labels)
	return nil
}
