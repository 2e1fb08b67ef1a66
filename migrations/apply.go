package migrations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// DB is what the migrations need of a connection: *pgxpool.Pool, *pgxpool.Conn and *pgx.Conn have it. They use one
// connection at a time, so a pool of one is enough.
type DB interface {
	BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error)
}

// Report says what a call did. Beside an error it says which version was found, in From and To.
type Report struct {
	From    int         // version of the schema before; 0 when there was none
	To      int         // version after
	Applied []Migration // the steps taken, in order; empty when there was nothing to do, and beside an error
}

// unchanged is the Report of a call that has taken no step.
func unchanged(version int) Report { return Report{From: version, To: version} }

// String is one line for a start-up log.
func (r Report) String() string {
	if len(r.Applied) == 0 {
		return fmt.Sprintf("txidem schema is at version %d: nothing to do", r.To)
	}
	return fmt.Sprintf("txidem schema migrated from version %d to %d", r.From, r.To)
}

// Apply brings the schema up to the newest version that this build knows, in one transaction: either all missing steps
// are applied or none. Of several callers at once one migrates, and the others wait for it and find nothing to do; callers
// for different databases, schemas or tables do not wait for each other. When the schema is up to date Apply only
// reads: no lock is taken and no DDL is sent. A schema newer than this build knows is left as it is, so that an older
// replica can start during a rollout.
//
// A step that changes the table waits until the handlers at work have ended, and whoever comes meanwhile waits behind it.
// Past [Config.LockTimeout] it is an error: try again when the long ones are done.
//
// An error leaves the schema as it was and no lock behind. The exception is a connection that broke during COMMIT: nobody
// knows then whether the schema was migrated, and calling Apply again finds out. Apply honours ctx while it waits.
func Apply(ctx context.Context, db DB, cfg *Config) (Report, error) {
	c, steps, current, err := cfg.look(ctx, db)
	if err != nil || current >= len(steps) {
		return unchanged(current), err
	}
	return c.locked(ctx, db, current, func(tx pgx.Tx, current int) (Report, error) {
		return c.up(ctx, tx, current, steps)
	})
}

func (c Config) up(ctx context.Context, tx pgx.Tx, current int, steps []Migration) (Report, error) {
	report := unchanged(current)
	for _, m := range steps {
		if m.Version <= current {
			continue
		}
		if err := c.run(ctx, tx, m, m.Up, c.sql(insertVersion)); err != nil {
			return report, err
		}
		report.To = m.Version
		report.Applied = append(report.Applied, m)
	}
	return report, nil
}

// Down takes back the newest applied step, in one transaction. Taking back the first step drops the records of every
// processed message: each message delivered again after that runs again. With nothing applied it does nothing. Errors are
// those of Apply, but when the connection broke during COMMIT ask [Status]: calling Down again may take back one step more.
func Down(ctx context.Context, db DB, cfg *Config) (Report, error) {
	c, steps, current, err := cfg.look(ctx, db)
	if err != nil || current == 0 {
		return unchanged(current), err
	}
	return c.locked(ctx, db, current, func(tx pgx.Tx, current int) (Report, error) {
		return c.down(ctx, tx, current, steps)
	})
}

func (c Config) down(ctx context.Context, tx pgx.Tx, current int, steps []Migration) (Report, error) {
	if current == 0 {
		return unchanged(0), nil
	}
	if newest := len(steps); current > newest {
		return unchanged(current), c.explain("Down", fmt.Errorf("the schema is at version %d and this build knows only %d: "+
			"run Down with the build that applied it", current, newest))
	}
	m := steps[current-1]
	if err := c.run(ctx, tx, m, m.Down, c.sql(deleteVersion)); err != nil {
		return unchanged(current), err
	}
	return Report{From: current, To: current - 1, Applied: []Migration{m}}, nil
}

// run executes one step and books it. The text of a step may hold several statements; without arguments pgx sends it
// in the simple protocol, which allows that.
func (c Config) run(ctx context.Context, tx pgx.Tx, m Migration, text, book string) error {
	if _, err := tx.Exec(ctx, text); err != nil {
		return c.explain(fmt.Sprintf("step %04d_%s", m.Version, m.Name), err)
	}
	tag, err := tx.Exec(ctx, book, m.Version, m.Name)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("the version table has no step %04d_%s: it was changed by somebody else", m.Version, m.Name)
	}
	return c.explain("booking a step", err)
}
