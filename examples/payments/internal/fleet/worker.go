package fleet

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/txidem/txidem-go/examples/payments/internal/worker"
)

// Worker is one child process.
type Worker struct {
	cmd      *exec.Cmd
	lifeline io.Closer     // its standard input: the worker ends when it does, also when this process is killed
	reports  io.Reader     // its standard output
	errors   *bytes.Buffer // its standard error, to be read once it has exited
}

func start(cfg worker.Config) (*Worker, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("fleet: find this program: %w", err)
	}
	w := &Worker{cmd: exec.Command(program), errors: &bytes.Buffer{}} //nolint:gosec // it is this program
	w.cmd.Env = cfg.Environ()
	w.cmd.Stderr = w.errors
	w.cmd.SysProcAttr = childAttr()
	if w.lifeline, err = w.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	if w.reports, err = w.cmd.StdoutPipe(); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("fleet: start a worker: %w", err)
	}
	return w, nil
}

// Kill sends SIGKILL. A worker that is gone already stays gone.
func (w *Worker) Kill() { _ = w.cmd.Process.Kill() }

// release lets the worker end by itself.
func (w *Worker) release() { _ = w.lifeline.Close() }

// listen turns the worker's output and end into events. It reads to the end of the pipe, which holds what a killed
// worker wrote, before it waits for the process.
func (w *Worker) listen(events chan<- Event) {
	lines := bufio.NewScanner(w.reports)
	for lines.Scan() {
		events <- Event{Worker: w, Report: worker.ParseReport(lines.Text())}
	}
	_, _ = io.Copy(io.Discard, w.reports) // what follows a line too long for the scanner
	_ = w.cmd.Wait()                      // ProcessState says the same
	end := fmt.Sprintf("%v: %s", w.cmd.ProcessState, strings.TrimSpace(w.errors.String()))
	events <- Event{Worker: w, Exited: true, End: end}
}
