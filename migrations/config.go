package migrations

import (
	"time"

	"github.com/txidem/txidem-go/internal/sqlgen"
)

// DefaultLockTimeout is how long a migration waits for each lock when [Config.LockTimeout] is zero: long enough for the
// other replicas of a rollout to finish theirs, short enough that a forgotten transaction fails the start-up visibly.
const DefaultLockTimeout = 10 * time.Second

// Config names what to migrate. A nil *Config means every default.
type Config struct {
	// Schema is the schema of the table. It must exist: Apply creates tables, not schemas. Default "public".
	Schema string

	// Table is the name of the table. The applied versions are kept beside it in a table of that name followed by
	// "_migrations". At most 52 bytes, so that this name fits too. Default "txidem_messages".
	Table string

	// LockTimeout bounds the wait for each lock, the one that keeps two migrations apart included. A migration that must
	// wait for a table blocks everybody who comes after it, so a long wait is an outage. It is rounded up to a
	// millisecond. Default 10 s ([DefaultLockTimeout]).
	LockTimeout time.Duration
}

// resolve fills in the defaults and refuses what cannot work, with a *ConfigError.
func (c *Config) resolve() (Config, error) {
	var r Config
	if c != nil {
		r = *c
	}
	if r.Schema == "" {
		r.Schema = sqlgen.DefaultSchema
	}
	if r.Table == "" {
		r.Table = sqlgen.DefaultTable
	}
	if r.LockTimeout == 0 {
		r.LockTimeout = DefaultLockTimeout
	}
	return r, r.validate()
}

func (c Config) validate() error {
	for _, err := range []error{
		refusal("Schema", sqlgen.CheckSchema(c.Schema)),
		refusal("Table", sqlgen.CheckTable(c.Table)),
		refusal("LockTimeout", sqlgen.CheckTimeout(c.LockTimeout)),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}
