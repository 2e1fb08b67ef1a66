//go:build unix

package pgserver

import (
	"os"
	"path/filepath"
	"syscall"
)

// reachable reports whether an account may pass through dir and each folder above it.
func reachable(dir string, a *account) bool {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	for {
		info, err := os.Stat(dir)
		if err != nil || !passable(info, a) {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// passable looks at the one permission class that applies to the account: owner, else group, else others.
func passable(info os.FileInfo, a *account) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	switch {
	case int(stat.Uid) == a.uid:
		return info.Mode()&0o100 != 0
	case int(stat.Gid) == a.gid:
		return info.Mode()&0o010 != 0
	}
	return info.Mode()&0o001 != 0
}
