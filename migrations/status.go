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
	c, err := cfg.resolve()
	if err != nil {
		return State{}, err
	}
	steps, err := c.render()
	if err != nil {
		return State{}, err
	}
	current, err := c.readVersion(ctx, db)
	if err != nil {
		return State{}, err
	}
	state := State{Current: current, Newest: len(steps)}
	if current < len(steps) {
		state.Pending = steps[current:]
	}
	return state, nil
}
