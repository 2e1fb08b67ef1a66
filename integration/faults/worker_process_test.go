package faults

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// workerProcess is a worker of its own: a child of this test. It is used by one goroutine.
type workerProcess struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // what it says, closed at its end
	gone  chan struct{}
}

// startWorker starts a worker that is killed at the end of the test if it is still there.
func startWorker(t *testing.T, dsn, mode string) *workerProcess {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	p := &workerProcess{cmd: exec.Command(program), lines: make(chan string, 16), gone: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), envChildDSN+"="+dsn, envChildMode+"="+mode)
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = workerAttr()
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	started := make(chan error)
	go p.run(out, started)
	require.NoError(t, <-started)
	t.Cleanup(p.kill)
	return p
}

// run starts the worker, reads what it says, and waits for its end, all on one thread (see workerAttr).
func (p *workerProcess) run(out io.Reader, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		p.lines <- scanner.Text()
	}
	close(p.lines)
	_ = p.cmd.Wait() // it was killed
	close(p.gone)
}

// kill ends the worker with SIGKILL and returns when it is gone. It may be called again.
func (p *workerProcess) kill() {
	_ = p.cmd.Process.Kill() // fails only for one that is gone
	<-p.gone
}

// deliver hands a message to the worker.
func (p *workerProcess) deliver(id, point string) error {
	_, err := fmt.Fprintf(p.in, "%s %s\n", id, point)
	return err
}

// answer is what a worker said.
type answer struct {
	reached bool   // it is at the point where it was to stop
	outcome string // it acked, with this outcome
	failed  string // it gave the message back, with this error
	dead    bool   // it said nothing more
}

func (p *workerProcess) listen() answer {
	line, ok := <-p.lines
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case !ok:
		return answer{dead: true}
	case word == "at":
		return answer{reached: true}
	case word == "acked":
		return answer{outcome: rest}
	default:
		return answer{failed: line}
	}
}
