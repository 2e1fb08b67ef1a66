package migrations

import (
	"context"
	"fmt"
)

// State is what [Status] found.
type State struct {
	Current int         // version of the schema; 0 when no step was applied by this package
	Newest  int         // newest version that this build knows
	Pending []Migration // the steps that Apply would take, in order
}

// String is one line for a log or a command.
func (s State) String() string {
	switch {
	case len(s.Pending) > 0:
		return fmt.Sprintf("txidem schema is at version %d of %d: %d to apply", s.Current, s.Newest, len(s.Pending))
	case s.Current > s.Newest:
		return fmt.Sprintf("txidem schema is at version %d, newer than the %d that this build knows", s.Current, s.Newest)
	default:
		return fmt.Sprintf("txidem schema is at version %d: up to date", s.Current)
	}
}

// Status says which version the schema has and which steps are missing. It only reads and takes no lock.
func Status(ctx context.Context, db DB, cfg *Config) (State, error) {
	_, steps, current, err := cfg.look(ctx, db)
	if err != nil {
		return State{}, err
	}
	state := State{Current: current, Newest: len(steps)}
	if current < len(steps) {
		state.Pending = steps[current:]
	}
	return state, nil
}

// look fills in the configuration, and returns it with the steps that this build knows and the version of the schema.
func (c *Config) look(ctx context.Context, db DB) (r Config, steps []Migration, current int, err error) {
	if r, err = c.resolve(); err != nil {
		return r, nil, 0, err
	}
	if steps, err = r.render(); err != nil {
		return r, nil, 0, err
	}
	current, err = r.readVersion(ctx, db)
	return r, steps, current, err
}
