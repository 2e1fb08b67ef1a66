package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
)

// Machine says what everything was measured on.
type Machine struct {
	CPU        string            `json:"cpu"`
	Cores      int               `json:"cores"`
	OS         string            `json:"os"`
	Go         string            `json:"go"`
	PostgreSQL string            `json:"postgresql"`
	Settings   map[string]string `json:"settings"`
}

// reported are the settings of the server that move the figures.
var reported = []string{
	"fsync", "synchronous_commit", "full_page_writes", "data_checksums", "wal_compression", "shared_buffers", "max_wal_size",
}

// machine looks at this machine and at the server. Both are taken to be one, as they are for a server that make bench
// starts.
func (l *lab) machine(ctx context.Context) (Machine, error) {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version(), Settings: map[string]string{}}
	processors, err := cpu.InfoWithContext(ctx)
	if err != nil {
		return m, fmt.Errorf("ask for the processor: %w", err)
	}
	if len(processors) > 0 {
		m.CPU = processors[0].ModelName
	}
	system, err := host.InfoWithContext(ctx)
	if err != nil {
		return m, fmt.Errorf("ask for the system: %w", err)
	}
	m.OS = fmt.Sprintf("%s %s, %s %s", system.Platform, system.PlatformVersion, system.OS, system.KernelVersion)
	m.PostgreSQL, err = l.setting(ctx, "server_version")
	for _, name := range reported {
		if err == nil {
			m.Settings[name], err = l.setting(ctx, name)
		}
	}
	return m, err
}

func (l *lab) setting(ctx context.Context, name string) (value string, err error) {
	err = l.own.QueryRow(ctx, `SELECT current_setting($1)`, name).Scan(&value)
	return value, err
}
