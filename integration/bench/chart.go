package main

import (
	"bytes"
	"errors"
	"fmt"
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
	barWidth    = 3 * vg.Millimeter
	barDistance = 10 * vg.Millimeter // with room for a label
	frameHeight = 36 * vg.Millimeter // title, legend and axis
	chartWidth  = 22 * vg.Centimeter
	margin      = 3 * vg.Millimeter
)

// The chart's font, and those of the same widths where it is not installed.
var (
	chartFont  = font.Font{Typeface: "Liberation", Variant: "Sans"}
	chartFonts = strings.NewReplacer("font-family:Liberation Sans", "font-family:Liberation Sans,Arial,Helvetica,sans-serif")
)

// legendBars is how many bars would fit where the legend is, above the first one.
const legendBars = 1.5

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
	height := frameHeight + barDistance*vg.Length(len(bars))
	canvas := vgsvg.New(chartWidth, height)
	whole := draw.New(canvas)
	whole.FillPolygon(p.BackgroundColor, []vg.Point{{}, {X: chartWidth}, {X: chartWidth, Y: height}, {Y: height}})
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
	p.Title.Text = "Time of a message at 1 ms of network round trip\n(p50, one worker; plain transaction = 1)"
	p.HideY()
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Millimeter
	if err := errors.Join(addBars(p, bars), addLimit(p, len(bars)), addLabels(p, bars)); err != nil {
		return nil, err
	}
	p.Legend.TextStyle.Font.Size = plotter.DefaultFontSize
	p.X.Tick.Marker = plot.TickerFunc(halves)
	p.X.Min, p.Y.Min = 0, -0.5
	p.Y.Max = float64(len(bars)) + legendBars
	return p, nil
}

// halves marks every half of a plain transaction.
func halves(_, most float64) []plot.Tick {
	var all []plot.Tick
	for v := 0.0; v <= most; v += 0.5 {
		all = append(all, plot.Tick{Value: v, Label: fmt.Sprintf("%g", v)})
	}
	return all
}
