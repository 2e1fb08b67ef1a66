// Package fleet starts worker processes, listens to them and kills them.
package fleet

import (
	"context"
	"time"

	"github.com/txidem/txidem-go/examples/payments/internal/worker"
)

// stopLimit is how long workers may take to end by themselves before they are killed.
const stopLimit = 5 * time.Second

// Event is something that happened to a worker. The events of one worker come in the order in which they happened, and
// everything that it reported before its death comes before Exited.
type Event struct {
	Worker *Worker       // to which it happened
	Report worker.Report // what it has reported, when it has not exited
	Exited bool          // the process is gone; Report is empty
	End    string        // with Exited: how it ended, and what it wrote to its standard error
}

// Fleet is a number of worker processes. Its methods are for one goroutine.
type Fleet struct {
	events  chan Event
	running map[*Worker]bool
	started int
}

// New makes a fleet without workers.
func New() *Fleet {
	return &Fleet{events: make(chan Event), running: map[*Worker]bool{}}
}

// Start adds a worker: this very program with cfg in its environment. It gives the worker its number.
func (f *Fleet) Start(cfg worker.Config) error {
	cfg.Number = f.started
	w, err := start(cfg)
	if err != nil {
		return err
	}
	f.started++
	f.running[w] = true
	go w.listen(f.events)
	return nil
}

// Events is where all events arrive. It must be read for as long as workers run. Pass the events with Exited to Remove.
func (f *Fleet) Events() <-chan Event { return f.events }

// Remove forgets a worker that has exited.
func (f *Fleet) Remove(w *Worker) { delete(f.running, w) }

// Stop asks all workers to end, kills those that do not, and returns when all are gone.
func (f *Fleet) Stop() {
	for w := range f.running {
		w.release()
	}
	patience, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	kill := patience.Done()
	for len(f.running) > 0 {
		select {
		case e := <-f.events:
			if e.Exited {
				f.Remove(e.Worker)
			}
		case <-kill:
			kill = nil
			for w := range f.running {
				w.Kill()
			}
		}
	}
}
