package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/txidem/txidem-go/examples/payments/internal/broker"
	"github.com/txidem/txidem-go/examples/payments/internal/worker"
)

// demo is what the three runs share.
type demo struct {
	config   Config
	plan     Plan
	bodies   [][]byte
	broker   *broker.Server
	database *database
}

// Run works the stream with each of the handlers and returns a Result for each. When it returns, also after ctx has
// ended, no process is left and everything it made is removed.
func Run(ctx context.Context, cfg Config) (_ []Result, err error) {
	d := &demo{config: cfg, plan: NewPlan(cfg.Seed, cfg.Messages, cfg.Kills)}
	if d.bodies, err = d.plan.Bodies(time.Now()); err != nil {
		return nil, err
	}
	if d.database, err = openDatabase(ctx, cfg.DSN); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.database.stop()) }()
	if d.broker, err = broker.Start(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.broker.Stop()) }()
	if err := d.announce(); err != nil {
		return nil, err
	}
	return d.runAll(ctx)
}

func (d *demo) runAll(ctx context.Context) ([]Result, error) {
	var results []Result
	for _, mode := range worker.Modes() {
		r, err := d.run(ctx, mode)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", mode.Title(), err)
		}
		results = append(results, r)
	}
	return results, nil
}

// announce says what is used, and how to use it again.
func (d *demo) announce() error {
	copies := len(d.plan.Order) - len(d.plan.Commands)
	_, err := fmt.Fprintf(d.config.Out, `server: %s
seed:   %d (-seed %[2]d draws the same messages, copies and kills)
work:   %[3]d messages, %d of them published twice; %d workers, %d kills in each of three runs
`, d.database.line, d.config.Seed, d.config.Messages, copies, d.config.Workers, d.config.Kills)
	return err
}

// run works the stream with one handler, on tables of its own.
func (d *demo) run(ctx context.Context, mode worker.Mode) (_ Result, err error) {
	tables, err := createSchema(ctx, d.database.dsn, mode)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, tables.drop(ctx)) }()
	stream, err := d.broker.CreateStream(ctx, string(mode))
	if err != nil {
		return Result{}, err
	}
	if err := stream.Publish(ctx, d.bodies); err != nil {
		return Result{}, err
	}
	s, err := d.drain(ctx, mode, stream, tables.name)
	if err != nil {
		return Result{}, err
	}
	return d.result(ctx, s, tables)
}

// drain has workers process the stream.
func (d *demo) drain(ctx context.Context, mode worker.Mode, stream *broker.Stream, schema string) (*shift, error) {
	s := newShift(stream, worker.Config{
		Mode:      mode,
		BrokerURL: d.broker.URL(),
		Stream:    stream.Name(),
		DSN:       d.database.dsn,
		Schema:    schema,
		Seed:      d.config.Seed,
	}, d.plan.Kills)
	bar := newProgress(d.config.Progress, mode.Title(), len(d.bodies))
	defer bar.end()
	return s, s.work(ctx, d.config.Workers, bar.set)
}

// result looks at the broker and at the tables once all workers are gone.
func (d *demo) result(ctx context.Context, s *shift, tables *schema) (Result, error) {
	state, err := s.stream.State(ctx)
	if err != nil {
		return Result{}, err
	}
	a, err := tables.audit(ctx, d.plan)
	if err != nil {
		return Result{}, err
	}
	return Result{
		Mode:        s.config.Mode,
		Messages:    len(d.plan.Commands),
		Deliveries:  state.Deliveries,
		Kills:       s.killed,
		AfterCommit: s.afterCommit,
		Charges:     a.charges,
		Twice:       a.twice,
		Lost:        a.lost,
		Unbalanced:  a.unbalanced,
		Overcharged: a.overcents,
	}, nil
}
