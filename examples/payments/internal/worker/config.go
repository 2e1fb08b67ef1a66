// Package worker is the child process of the demo: it consumes a stream with one of the three handlers and tells its
// parent how far it has come.
package worker

import (
	"encoding/json"
	"fmt"
	"os"
)

// envConfig is the environment variable that makes a process a worker.
const envConfig = "TXIDEM_PAYMENTS_WORKER"

// Config is what a worker is told by its parent.
type Config struct {
	Mode      Mode   // which handler to run
	BrokerURL string // where to consume
	Stream    string // what to consume
	DSN       string // of the PostgreSQL to charge in
	Schema    string // of the run's tables
	Seed      uint64 // of the pauses
	Number    int    // tells the workers of a run apart
}

// Environ returns the environment of a worker with this Config.
func (c Config) Environ() []string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers can be marshalled
	}
	return append(os.Environ(), envConfig+"="+string(text))
}

// Requested returns the Config of this process, and false when it was not started as a worker.
func Requested() (Config, bool, error) {
	text, ok := os.LookupEnv(envConfig)
	if !ok {
		return Config{}, false, nil
	}
	var c Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return Config{}, true, fmt.Errorf("worker: read %s: %w", envConfig, err)
	}
	return c, true, nil
}
