package txidem

// Option carries what is known of one delivery, or of all deliveries of one wrapped handler.
type Option func(*options)

type options struct {
	observer   Observer
	savepoints bool
}

// WithObserver sets the observer in place of [Config.Observer]. It is the way to observe [WrapSeen] over a Store that has
// no Config, and to tell the deliveries of one handler from those of the others that share a Guard.
func WithObserver(o Observer) Option {
	return func(opts *options) { opts.observer = o }
}

// WithSavepoints has [WrapBatch] find the messages that fail with a savepoint for each message, in one transaction, instead
// of trying halves of the batch in transactions of their own. It is for batches in which several messages fail, and
// handlers that work message by message anyway: h is called with one message at a time then, and each costs two round trips
// more. The first attempt is for the whole batch all the same. What a savepoint cannot tell apart, a COMMIT that is refused
// or a message that loses the transaction, is looked for in halves after that. Other handlers do not heed it.
func WithSavepoints() Option {
	return func(opts *options) { opts.savepoints = true }
}

// collect applies the options to what the Config says.
func collect(observer Observer, opts []Option) options {
	if len(opts) == 0 {
		return options{observer: observer}
	}
	o := options{observer: observer}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return o
}
