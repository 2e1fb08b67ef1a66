package txidem

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/internal/sqlgen"
	"github.com/txidem/txidem-go/internal/sqltext"
)

// DefaultInFlightWait is the wait for a copy in flight when [Config.InFlightWait] is zero. It leaves most of the 30
// seconds that brokers commonly give a consumer to ack (SQS and NATS JetStream default to 30 s) to the handler.
const DefaultInFlightWait = 5 * time.Second

// DefaultIdleLimit is how long a transaction may be idle when [Config.IdleLimit] is zero.
const DefaultIdleLimit = 5 * time.Minute

// Config says who processes messages and how. Only Consumer is required.
type Config struct {
	// Consumer is the logical role that processes the messages, such as "ledger" or "email". Records are keyed by message
	// id and consumer: two roles both get a message, all instances of one role share it. Stored verbatim; 1 to 255 bytes of
	// UTF-8 without NUL. Renaming it makes every message new. Required.
	Consumer string

	// Schema is the schema of the record table, at most 63 bytes: the one that package migrations was given. search_path is
	// not used. Default "public".
	Schema string

	// Table is the name of the record table, at most 52 bytes. Package migrations creates it. Default "txidem_messages".
	Table string

	// InFlightWait is how long a claim waits for another copy of the same message that is being processed right now. A
	// short wait frees the worker for other messages and leaves the copy to the broker; a long one saves redeliveries.
	// Past it the delivery fails with ErrInFlight and the broker sends the message again. When copies take over from each
	// other, or the table itself is locked, the end comes up to one second later; see "Pipelines" and "Batches" in the
	// package's documentation for theirs. Positive, rounded up to a millisecond, and under 25 days, which is the longest that
	// PostgreSQL takes; it cannot be off. Default 5 s ([DefaultInFlightWait]).
	InFlightWait time.Duration

	// RequireID refuses messages with an empty id by ErrInvalidID. For consumers whose producers all set one: a missing id
	// is then a bug to be seen, not a message to be run without protection. Default false: such a message runs, Unguarded.
	RequireID bool

	// TxOptions are for the handler's transaction: its isolation level, or a BeginQuery. Refused are a read-only AccessMode, a
	// CommitQuery, and a BeginQuery that does not begin with BEGIN or START, or has a semicolon in it. Default: what the
	// session has, READ COMMITTED unless the server was told otherwise.
	TxOptions pgx.TxOptions

	// IdleLimit is how long the handler may leave its transaction without a statement before the server ends it
	// (idle_in_transaction_session_timeout). It frees the message, and the locks, of a worker that froze or was cut off from
	// the network; without it they are held until the TCP connection is given up, which can take hours. A stricter
	// setting of the session stays in force. A handler that is alive and needs longer between two statements fails, with an
	// error that names the limit: raise it for that. Positive, rounded up to a millisecond, and under 25 days; it cannot be
	// off. Default 5 minutes ([DefaultIdleLimit]).
	IdleLimit time.Duration

	// Retry bounds the retries inside one delivery. Default: see [RetryPolicy].
	Retry RetryPolicy

	// Observer is told what became of every message; see [SlogObserver] for one that logs. Default none.
	Observer Observer
}

// resolve fills in the defaults.
func (c Config) resolve() Config {
	if c.Schema == "" {
		c.Schema = sqlgen.DefaultSchema
	}
	if c.Table == "" {
		c.Table = sqlgen.DefaultTable
	}
	if c.InFlightWait == 0 {
		c.InFlightWait = DefaultInFlightWait
	}
	if c.IdleLimit == 0 {
		c.IdleLimit = DefaultIdleLimit
	}
	c.Retry = c.Retry.resolve()
	return c
}

// beginQuery is what begins a transaction with these options.
func beginQuery(o pgx.TxOptions) string {
	if o.BeginQuery != "" {
		return o.BeginQuery
	}
	level := ""
	if o.IsoLevel != "" {
		level = "isolation level " + string(o.IsoLevel)
	}
	return sqlgen.Begin(level, string(o.AccessMode), string(o.DeferrableMode))
}

func (c Config) validate() error {
	if problem := keyProblem(c.Consumer, maxConsumerBytes); problem != "" {
		return &ConfigError{Field: "Consumer", Problem: problem}
	}
	if err := sqlgen.CheckSchema(c.Schema); err != nil {
		return &ConfigError{Field: "Schema", Problem: err.Error()}
	}
	if err := sqlgen.CheckTable(c.Table); err != nil {
		return &ConfigError{Field: "Table", Problem: err.Error()}
	}
	if err := sqlgen.CheckTimeout(c.InFlightWait); err != nil {
		return &ConfigError{Field: "InFlightWait", Problem: err.Error()}
	}
	if err := sqlgen.CheckTimeout(c.IdleLimit); err != nil {
		return &ConfigError{Field: "IdleLimit", Problem: err.Error()}
	}
	if c.TxOptions.AccessMode == pgx.ReadOnly {
		return &ConfigError{Field: "TxOptions", Problem: "has AccessMode read only: the claim is a write"}
	}
	if word := sqltext.FirstWord(c.TxOptions.BeginQuery); c.TxOptions.BeginQuery != "" && word != "BEGIN" && word != "START" {
		return &ConfigError{Field: "TxOptions", Problem: "has a BeginQuery that does not begin with BEGIN or START TRANSACTION: " +
			"the claim would be committed by itself"}
	}
	if strings.Contains(c.TxOptions.BeginQuery, ";") {
		return &ConfigError{Field: "TxOptions", Problem: "has a BeginQuery of several statements: leave the others to the handler"}
	}
	if c.TxOptions.CommitQuery != "" {
		return &ConfigError{Field: "TxOptions", Problem: "has a CommitQuery: the end of the transaction is txidem's"}
	}
	return c.Retry.validate()
}

// Option is an option for the deliveries of one message each. Every Option is a [BatchOption] too.
type Option interface {
	BatchOption
	apply(o *options)
}

// BatchOption is an option of [Guard.ProcessBatch] and [WrapBatch].
type BatchOption interface {
	applyToBatch(o *options)
}

type options struct {
	observer   Observer
	savepoints bool
}

type option func(*options)

func (f option) apply(o *options)        { f(o) }
func (f option) applyToBatch(o *options) { f(o) }

type batchOption func(*options)

func (f batchOption) applyToBatch(o *options) { f(o) }

// WithObserver sets the observer in place of [Config.Observer]. It is the way to observe [WrapSeen] over a Store that has
// no Config, and to tell the deliveries of one handler from those of the others that share a Guard.
func WithObserver(obs Observer) Option { return option(func(o *options) { o.observer = obs }) }

// WithSavepoints has the messages of a batch that fail found with a savepoint for each message, in one transaction, instead
// of trying halves of the batch in transactions of their own. It is for batches in which several messages fail, and
// handlers that work message by message anyway: h is called with one message at a time then, and each costs two round trips
// more. The first attempt is for the whole batch all the same. What a savepoint cannot tell apart, a COMMIT that is refused
// or a message that loses the transaction, is looked for in halves after that. The role needs DELETE on the table.
func WithSavepoints() BatchOption { return batchOption(func(o *options) { o.savepoints = true }) }

// collect applies the options to what the Config says. nil options are passed over.
func collect(observer Observer, opts []Option) options {
	if len(opts) == 0 {
		return options{observer: observer} // which takes no allocation
	}
	o := options{observer: observer}
	for _, opt := range opts {
		if opt != nil {
			opt.apply(&o)
		}
	}
	return o
}

// collectBatch is collect for a batch.
func collectBatch(observer Observer, opts []BatchOption) options {
	o := options{observer: observer}
	for _, opt := range opts {
		if opt != nil {
			opt.applyToBatch(&o)
		}
	}
	return o
}
