package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const familyLimit = 60 * time.Second

// family is a running program with everything that it has started. Its folder for temporary files is its own, and the
// environment variable that says so is inherited: it marks the members.
type family struct {
	cmd  *exec.Cmd
	temp string
}

// startFamily starts the program with more work than a test waits for, and returns when its workers are there.
func startFamily(t *testing.T) *family {
	t.Helper()
	temp, err := os.MkdirTemp("", "payments-test-")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(temp)) })
	require.NoError(t, os.Chmod(temp, 0o755)) // the server of a root user runs under another account
	f := &family{cmd: program(t, "-messages", "5000", "-workers", "2", "-kills", "200"), temp: temp}
	f.cmd.Env = append(f.cmd.Env, "TMPDIR="+temp)
	stdout, err := f.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, f.cmd.Start())
	t.Cleanup(func() { _ = f.cmd.Process.Kill() }) // gone already, when all went well

	lines := bufio.NewScanner(stdout)
	require.True(t, lines.Scan(), "the line that says which server was taken")
	f.wait(t, "the workers", func() bool { return len(f.workers(t)) >= 2 })
	return f
}

// members returns the processes that live, the program included.
func (f *family) members(t *testing.T) []int {
	t.Helper()
	return processes(t, []byte("\x00TMPDIR="+f.temp+"\x00"))
}

// workers returns those that are workers.
func (f *family) workers(t *testing.T) []int {
	t.Helper()
	return processes(t, []byte("\x00TMPDIR="+f.temp+"\x00"), []byte("\x00TXIDEM_PAYMENTS_WORKER="))
}

// wait polls the process table: the kernel sends no signal to those who wait for another's child.
func (f *family) wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(familyLimit); !done(); time.Sleep(10 * time.Millisecond) {
		require.False(t, time.Now().After(deadline), "waited %v for %s", familyLimit, what)
	}
}

// processes returns the ids of those whose environment holds all the marks.
func processes(t *testing.T, marks ...[]byte) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	var ids []int
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil {
			continue // gone, or another user's
		}
		env = append([]byte{0}, env...)
		if containsAll(env, marks) {
			id, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			require.NoError(t, err)
			ids = append(ids, id)
		}
	}
	return ids
}

func containsAll(b []byte, marks [][]byte) bool {
	for _, mark := range marks {
		if !bytes.Contains(b, mark) {
			return false
		}
	}
	return true
}

func TestInterruptLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			f := startFamily(t)
			require.NoError(t, f.cmd.Process.Signal(sig))
			var exit *exec.ExitError
			require.ErrorAs(t, f.cmd.Wait(), &exit)
			assert.Equal(t, exitInterrupted, exit.ExitCode())
			assert.Empty(t, f.members(t), "processes left")
			entries, err := os.ReadDir(f.temp)
			require.NoError(t, err)
			assert.Empty(t, entries, "files left")
		})
	}
}

func TestNoWorkerSurvivesAKilledParent(t *testing.T) {
	t.Parallel()
	f := startFamily(t)
	require.NoError(t, f.cmd.Process.Kill())
	_ = f.cmd.Wait() // it was killed
	f.wait(t, "all processes to end", func() bool { return len(f.members(t)) == 0 })
}
