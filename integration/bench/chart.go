package main

import (
	"bytes"
	"errors"
	"os"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

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
