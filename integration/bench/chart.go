package main

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"os"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

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
	case contender == handClaimedName, contender == handSeenName:
		return 1
	default:
		return 2
	}
}

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

const (
	barWidth    = 14 // points
	chartWidth  = 22 * vg.Centimeter
	chartHeight = 11 * vg.Centimeter
	margin      = 3 * vg.Millimeter
)

// The chart's font, and those of the same widths where it is not installed.
var (
	chartFont  = font.Font{Typeface: "Liberation", Variant: "Sans"}
	chartFonts = strings.NewReplacer("font-family:Liberation Sans", "font-family:Liberation Sans,Arial,Helvetica,sans-serif")
)

// writeChart draws the chart into an SVG file.
func (r *Report) writeChart(file string) error {
	bars := r.bars()
	if len(bars) == 0 {
		return errors.New("nothing to draw: 1 ms with one worker was not measured")
	}
	p, err := newChart(bars)
	if err != nil {
		return err
	}
	canvas := vgsvg.New(chartWidth, chartHeight)
	whole := draw.New(canvas)
	whole.FillPolygon(p.BackgroundColor, []vg.Point{{}, {X: chartWidth}, {X: chartWidth, Y: chartHeight}, {Y: chartHeight}})
	p.Draw(draw.Crop(whole, margin, -margin, margin, -margin))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(chartFonts.Replace(svg.String())), 0o644)
}

func newChart(bars []bar) (*plot.Plot, error) {
	plot.DefaultFont, plotter.DefaultFont = chartFont, chartFont
	p := plot.New()
	p.Title.Text = "Time of a message at 1 ms of network round trip (p50, one worker)"
	p.X.Label.Text = "plain transaction without dedupe = 1"
	p.X.Min = 0
	names := make([]string, len(bars))
	for i, b := range bars {
		names[i] = b.name
	}
	if err := errors.Join(addBars(p, bars), addLimit(p, len(bars))); err != nil {
		return nil, err
	}
	p.NominalY(names...)
	p.X.Max *= 1.15 // room for the numbers
	return p, nil
}

// addBars adds one set of bars for each colour, with zeros where another colour is, and the numbers.
func addBars(p *plot.Plot, bars []bar) error {
	for kind, look := range barColors {
		values := make(plotter.Values, len(bars))
		for i, b := range bars {
			if kindOf(b.name) == kind {
				values[i] = b.value
			}
		}
		chart, err := plotter.NewBarChart(values, vg.Points(barWidth))
		if err != nil {
			return err
		}
		chart.Horizontal, chart.Color, chart.LineStyle.Width = true, look.color, 0
		p.Add(chart)
		p.Legend.Add(look.kind, chart)
	}
	p.Legend.Top, p.Legend.Padding = true, vg.Millimeter
	return addNumbers(p, bars)
}

// addLimit draws the line of the plain transaction.
func addLimit(p *plot.Plot, bars int) error {
	line, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -0.5}, {X: 1, Y: float64(bars) - 0.5}})
	if err != nil {
		return err
	}
	line.Color, line.Dashes = barColors[0].color, plotutil.Dashes(1)
	p.Add(line)
	return nil
}

func addNumbers(p *plot.Plot, bars []bar) error {
	at := plotter.XYLabels{XYs: make(plotter.XYs, len(bars)), Labels: make([]string, len(bars))}
	for i, b := range bars {
		at.XYs[i] = plotter.XY{X: b.value, Y: float64(i)}
		at.Labels[i] = fmt.Sprintf("%.3g", b.value)
	}
	numbers, err := plotter.NewLabels(at)
	if err != nil {
		return err
	}
	numbers.Offset = vg.Point{X: vg.Points(4), Y: -vg.Points(4)}
	p.Add(numbers)
	return nil
}
