package pgserver

import (
	"os"
	"path/filepath"
	"testing"
)

// The download is the library's own affair; what is made of it is tested with this machine's binaries.
func TestEmbeddedServer(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("needs an ordinary user: embedded-postgres does not run as root")
	}
	binaries, err := findBinaries()
	if err != nil {
		t.Skipf("needs PostgreSQL server binaries: %v", err)
	}
	folder, err := makeFolder(nil)
	if err != nil {
		t.Fatal(err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	config := embeddedConfig(folder, port, Options{}.settings()).BinariesPath(filepath.Dir(binaries))
	s, err := startEmbedded(t.Context(), config, folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop() })
	if err := s.announce(t.Context(), func(line string) { t.Log(line) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("stat %s: %v, want it gone", folder, err)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
}
