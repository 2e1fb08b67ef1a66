package pgserver_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/txidem/txidem-go/integration/pgserver"
)

// childEnv makes this test binary a child that starts a server, says where it is, and waits.
const childEnv = "TXIDEM_TEST_CHILD"

// A process that is killed runs no clean-up, so the kernel has to end its server.
func TestServerDiesWithItsParent(t *testing.T) {
	startLocal(t) // skips without binaries
	child := exec.Command(os.Args[0], "-test.run=^TestChild$")
	child.Env = append(os.Environ(), childEnv+"=1")
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Process.Kill()
	dataFolder, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the child said nothing: %v", err)
	}
	dataFolder = strings.TrimSpace(dataFolder)
	t.Cleanup(func() { os.RemoveAll(strings.TrimSuffix(dataFolder, "/data")) })
	pid := postmasterPID(t, dataFolder)
	if gone(pid) {
		t.Fatalf("no process %s before the kill", pid)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	child.Wait()
	for deadline := time.Now().Add(20 * time.Second); !gone(pid); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("server %s outlives its parent", pid)
		}
	}
}

// TestChild is not a test: it is what the child runs.
func TestChild(t *testing.T) {
	if os.Getenv(childEnv) == "" {
		t.Skip("runs as the child of TestServerDiesWithItsParent")
	}
	s, err := pgserver.Start(t.Context(), pgserver.Options{Order: []pgserver.Source{pgserver.FromLocal}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	fmt.Println(show(t, s.DSN(), "data_directory"))
	select {} // until it is killed
}

// postmasterPID reads the first line of the file in which a server keeps its own number.
func postmasterPID(t *testing.T, dataFolder string) string {
	t.Helper()
	text, err := os.ReadFile(dataFolder + "/postmaster.pid")
	if err != nil {
		t.Fatal(err)
	}
	pid, _, _ := strings.Cut(string(text), "\n")
	return pid
}

// gone reports whether a process has ended. One that nobody waited for yet has.
func gone(pid string) bool {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	return err != nil || strings.Contains(string(text), ") Z ")
}
