package cputime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Backends are the server's processes behind the connections to one database. They are not looked up again: a
// connection that is made later is not among them, and the end of one makes Time fail.
type Backends struct{ folders []string }

// Querier is a connection, a pool or a transaction.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// connected lists the database of the session and the process ids of all its client connections, as the server counts.
const connected = `SELECT current_database(), array_agg(pid) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend'`

// Find looks for the processes of all connections to db's database. It returns an error that wraps ErrNotMeasurable
// unless it finds every one of them.
func Find(ctx context.Context, db Querier) (*Backends, error) {
	var database string
	var pids []int
	if err := db.QueryRow(ctx, connected).Scan(&database, &pids); err != nil {
		return nil, fmt.Errorf("ask for the server's processes: %w", err)
	}
	found := processes("/proc", database)
	b := &Backends{}
	for _, pid := range pids {
		folder, ok := found[pid]
		if !ok {
			return nil, fmt.Errorf("%w: the server's process %d is not visible in /proc", ErrNotMeasurable, pid)
		}
		b.folders = append(b.folders, folder)
	}
	_, err := b.Time()
	return b, err
}

// Len returns the number of processes.
func (b *Backends) Len() int { return len(b.folders) }

// Time returns the processor time that the processes have used together.
func (b *Backends) Time() (time.Duration, error) {
	var sum time.Duration
	for _, folder := range b.folders {
		t, err := ran(folder)
		if err != nil {
			return 0, err
		}
		sum += t
	}
	return sum, nil
}

// ran returns how long a process has run, the first field of its schedstat.
func ran(folder string) (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join(folder, "schedstat"))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotMeasurable, err)
	}
	first, _, _ := strings.Cut(string(text), " ")
	ns, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %s/schedstat begins with %q", ErrNotMeasurable, folder, first)
	}
	return time.Duration(ns), nil
}
