package txidem

// Option carries what is known of one delivery, or of all deliveries of one wrapped handler.
type Option func(*options)

type options struct {
	observer Observer
}

// WithObserver sets the observer in place of [Config.Observer]. It is the way to observe [WrapSeen] over a Store that has
// no Config, and to tell the deliveries of one handler from those of the others that share a Guard.
func WithObserver(o Observer) Option {
	return func(opts *options) { opts.observer = o }
}

func collect(observer Observer, opts []Option) options {
	o := options{observer: observer}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return o
}
