package pgserver

import (
	"fmt"
	"os"
)

// makeFolder creates a private temporary folder that the server's account owns and can reach.
func makeFolder(a *account) (string, error) {
	parent := os.TempDir()
	if a != nil && !reachable(parent, a) {
		parent = "/tmp"
		if !reachable(parent, a) {
			return "", fmt.Errorf("user %s, under whom the server runs, can reach neither %s nor /tmp: "+
				"point TMPDIR at a folder that every user can reach", a.name, os.TempDir())
		}
	}
	dir, err := os.MkdirTemp(parent, "txidem-pg-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the server: %w", err)
	}
	if a == nil {
		return dir, nil
	}
	if err := os.Chown(dir, a.uid, a.gid); err != nil {
		os.Remove(dir)
		return "", fmt.Errorf("hand the server's folder to user %s: %w", a.name, err)
	}
	return dir, nil
}
