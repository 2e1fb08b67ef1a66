package txidem

import "context"

// Store is the seen-set contract: three methods that remember which messages a consumer has finished. [Guard] keeps the
// set in PostgreSQL, in the same records that Process makes; [MemoryStore] keeps it in memory. Implementations are safe
// for concurrent use.
//
// An empty id is nobody's: Seen says false, Remember and Forget do nothing.
type Store interface {
	// Seen reports whether the id was remembered.
	Seen(ctx context.Context, id string) (bool, error)

	// Remember adds the id. It is called after the handler has succeeded. Remembering an id twice is no error.
	Remember(ctx context.Context, id string) error

	// Forget removes the id, so that the next delivery of the message runs. Forgetting an unknown id is no error.
	Forget(ctx context.Context, id string) error
}

var (
	_ Store = (*Guard)(nil)
	_ Store = (*MemoryStore)(nil)
)
