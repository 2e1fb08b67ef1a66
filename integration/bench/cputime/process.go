package cputime

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processes returns the folders, in proc, of the PostgreSQL processes that serve a database, by the process id that the
// server knows. That is not the folder's name for a server in a container, which counts from 1.
func processes(proc, database string) map[int]string {
	found := map[int]string{}
	folders, err := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	if err != nil {
		return found
	}
	for _, folder := range folders {
		if !serves(folder, database) {
			continue
		}
		if pid, ok := innermost(folder); ok {
			found[pid] = folder
		}
	}
	return found
}

// serves looks at the title that a backend gives itself, such as "postgres: role database 127.0.0.1(55555) idle".
func serves(folder, database string) bool {
	title, err := os.ReadFile(filepath.Join(folder, "cmdline"))
	if err != nil {
		return false // it has ended, or is not ours to look at
	}
	return strings.HasPrefix(string(title), "postgres: ") && strings.Contains(string(title), " "+database+" ")
}

// innermost returns the process id in the innermost namespace, the last number of the line NSpid of its status.
func innermost(folder string) (int, bool) {
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			all := strings.Fields(numbers)
			if len(all) == 0 {
				return 0, false
			}
			pid, err := strconv.Atoi(all[len(all)-1])
			return pid, err == nil
		}
	}
	return 0, false
}
