package txidem

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"
)

// The bounds of a memory store when its MemoryConfig leaves them zero.
const (
	DefaultMemoryLimit = 100_000
	DefaultMemoryAge   = 24 * time.Hour
)

// MemoryConfig bounds a MemoryStore. A nil *MemoryConfig means every default.
type MemoryConfig struct {
	// Limit is the largest number of ids kept; the oldest goes first. Default 100 000 ([DefaultMemoryLimit]).
	Limit int

	// Age is how long an id is kept after it was last remembered. Default 24 h ([DefaultMemoryAge]).
	Age time.Duration
}

// MemoryStore is a seen-set in the memory of one process, bounded in number and age: for tests, and for consumers that
// run as a single process and can live with forgetting everything when it ends. It never claims anything: two copies
// of a message in flight at once both run. It is safe for concurrent use.
//
// Expired ids are freed by the next call of Remember, whichever id that is about.
type MemoryStore struct {
	limit int
	age   time.Duration

	mu    sync.Mutex
	byAge *list.List // of memoryEntry, oldest first
	ids   map[string]*list.Element
}

type memoryEntry struct {
	id         string
	remembered time.Time
}

// NewMemoryStore makes an empty store. It refuses negative bounds with a *ConfigError.
func NewMemoryStore(cfg *MemoryConfig) (*MemoryStore, error) {
	c := MemoryConfig{}
	if cfg != nil {
		c = *cfg
	}
	if c.Limit == 0 {
		c.Limit = DefaultMemoryLimit
	}
	if c.Age == 0 {
		c.Age = DefaultMemoryAge
	}
	if c.Limit < 0 {
		return nil, &ConfigError{Field: "Limit", Problem: fmt.Sprintf("is %d: it must be positive", c.Limit)}
	}
	if c.Age < 0 {
		return nil, &ConfigError{Field: "Age", Problem: fmt.Sprintf("is %s: it must be positive", c.Age)}
	}
	return &MemoryStore{limit: c.Limit, age: c.Age, byAge: list.New(), ids: map[string]*list.Element{}}, nil
}

// Seen reports whether the id was remembered and is still kept. Its error is nil, or an *IDError.
func (s *MemoryStore) Seen(_ context.Context, id string) (bool, error) {
	if guarded, err := checkID(id, false); err != nil || !guarded {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.ids[id]
	return ok && !s.expired(e), nil
}

// Remember adds the id, or makes it the youngest. Its error is nil, or an *IDError.
func (s *MemoryStore) Remember(_ context.Context, id string) error {
	if guarded, err := checkID(id, false); err != nil || !guarded {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(s.ids[id])
	s.ids[id] = s.byAge.PushBack(memoryEntry{id: id, remembered: time.Now()})
	for s.byAge.Len() > s.limit || s.byAge.Len() > 0 && s.expired(s.byAge.Front()) {
		s.drop(s.byAge.Front())
	}
	return nil
}

// Forget removes the id. Its error is nil, or an *IDError.
func (s *MemoryStore) Forget(_ context.Context, id string) error {
	if guarded, err := checkID(id, false); err != nil || !guarded {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(s.ids[id])
	return nil
}

// Len returns the number of ids held, expired ones that were not freed yet included.
func (s *MemoryStore) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byAge.Len()
}

func (s *MemoryStore) expired(e *list.Element) bool {
	return time.Since(e.Value.(memoryEntry).remembered) >= s.age
}

func (s *MemoryStore) drop(e *list.Element) {
	if e == nil {
		return
	}
	s.byAge.Remove(e)
	delete(s.ids, e.Value.(memoryEntry).id)
}
