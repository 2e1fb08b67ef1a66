package txidem

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
