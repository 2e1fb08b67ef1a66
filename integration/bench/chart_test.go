package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// drawing is what the test looks at in an SVG file.
type drawing struct {
	Width string  `xml:"width,attr"`
	Box   string  `xml:"viewBox,attr"`
	Texts []label `xml:"g>text"`
}

type label struct {
	X     float64 `xml:"x,attr"`
	Y     float64 `xml:"y,attr"`
	Style string  `xml:"style,attr"`
	Text  string  `xml:",chardata"`
}

// widest is the width of a character in the widest fonts that people read with, as a share of the font's size.
const widest = 0.7

// Every text fits on the page in the widest font, and no two are on the same line where one could cover the other.
func TestChartFitsAnyFont(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "chart.svg")
	require.NoError(t, sample().writeChart(file))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var d drawing
	require.NoError(t, xml.Unmarshal(text, &d))
	box := strings.Fields(d.Box)
	require.Len(t, box, 4)
	width, err := strconv.ParseFloat(box[2], 64)
	require.NoError(t, err)
	require.Greater(t, len(d.Texts), len(sample().Cells[0].Figures))
	for i, a := range d.Texts {
		require.Positive(t, a.X)
		require.Less(t, a.end(t), width, a.Text)
		for _, b := range d.Texts[:i] {
			apart := a.Y-b.Y >= 10 || b.Y-a.Y >= 10 || a.X > b.end(t) || b.X > a.end(t)
			require.True(t, apart, "%q and %q", a.Text, b.Text)
		}
	}
}

// end is where a text ends in the widest font.
func (l label) end(t *testing.T) float64 {
	t.Helper()
	_, style, ok := strings.Cut(l.Style, "font-size:")
	require.True(t, ok, l.Style)
	size, err := strconv.ParseFloat(style[:strings.Index(style, "px")], 64)
	require.NoError(t, err)
	return l.X + size*widest*float64(len([]rune(l.Text)))
}

// sample has the cell that the chart is drawn from, with bars of every length and the longest names.
func sample() *Report {
	cell := Cell{Place: oneMilli, Workers: 1}
	names := []string{
		plainName, autocommitName, plainRowsName, handClaimedName, handSeenName, handRowsName, processName, pipelineName,
	}
	for i, name := range names {
		cell.Figures = append(cell.Figures, Figures{Contender: name, Batch: 1, P50Ratio: 1.9 - float64(i)*0.27})
	}
	return &Report{Cells: []Cell{cell}}
}
