package demo

import (
	"fmt"
	"io"

	"github.com/schollz/progressbar/v3"
)

// progress shows how far a run has come. Its zero value shows nothing.
type progress struct {
	bar *progressbar.ProgressBar
	out io.Writer
}

// newProgress draws on w, or nowhere when w is nil.
func newProgress(w io.Writer, name string, total int) progress {
	if w == nil {
		return progress{}
	}
	bar := progressbar.NewOptions(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(fmt.Sprintf("%-20s", name)),
		progressbar.OptionShowCount(),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(false),
	)
	return progress{bar: bar, out: w}
}

// set draws the bar. That a bar cannot be drawn stops nobody.
func (p progress) set(n int) {
	if p.bar != nil {
		_ = p.bar.Set(n)
	}
}

// end leaves the bar as it is and goes to the next line.
func (p progress) end() {
	if p.bar != nil {
		_ = p.bar.Exit()
		_, _ = fmt.Fprintln(p.out)
	}
}
