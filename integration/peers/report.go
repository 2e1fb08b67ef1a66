package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// Report is all that a run has measured.
type Report struct {
	Go         string            `json:"go"`
	Cores      int               `json:"cores"`
	PostgreSQL string            `json:"postgresql"`
	Modules    map[string]string `json:"modules"`
	Costs      []Cost            `json:"costs"`
	Effects    []Effects         `json:"effects"`
	Missing    []Missing         `json:"not_measured,omitempty"`
}

// Missing is a contender that could not take part.
type Missing struct {
	Contender string `json:"contender"`
	Why       string `json:"why"`
}

func newReport() *Report {
	r := &Report{Go: runtime.Version(), Cores: runtime.NumCPU(), Modules: map[string]string{}}
	for _, p := range peers() {
		if p.module != "" && p.missing == "" {
			r.Modules[p.module] = version(p.module)
		}
	}
	return r
}

// version of a module in this build. One that comes from a folder has none.
func version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		switch {
		case m.Path != module:
		case m.Replace != nil:
			return "from a folder"
		default:
			return m.Version
		}
	}
	return "unknown"
}

// writeJSON writes the report to a file.
func (r *Report) writeJSON(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("render %s: %w", file, err)
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
