package txidem

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func newMemory(t *testing.T, limit int, age time.Duration) *MemoryStore {
	t.Helper()
	s, err := NewMemoryStore(&MemoryConfig{Limit: limit, Age: age})
	require.NoError(t, err)
	return s
}

func seen(t *testing.T, s Store, id string) bool {
	t.Helper()
	ok, err := s.Seen(t.Context(), id)
	require.NoError(t, err)
	return ok
}

// A million ids with a cap of ten thousand stay at the cap, and the youngest are the ones kept.
func TestMemoryStoreStaysAtItsLimit(t *testing.T) {
	t.Parallel()
	const limit, ids = 10_000, 1_000_000
	s := newMemory(t, limit, time.Hour)
	for i := range ids {
		require.NoError(t, s.Remember(t.Context(), strconv.Itoa(i)))
		if i%100_000 == 0 {
			require.LessOrEqual(t, s.Len(), limit)
		}
	}
	require.Equal(t, limit, s.Len())
	require.Len(t, s.ids, limit)
	require.True(t, seen(t, s, strconv.Itoa(ids-limit)))
	require.False(t, seen(t, s, strconv.Itoa(ids-limit-1)))
}

func TestMemoryStoreFreesExpiredIDsUnread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t, 1000, time.Hour)
		for i := range 100 {
			require.NoError(t, s.Remember(t.Context(), strconv.Itoa(i)))
		}
		time.Sleep(time.Hour - time.Nanosecond)
		require.True(t, seen(t, s, "7"))
		require.NoError(t, s.Remember(t.Context(), "7"))
		time.Sleep(time.Nanosecond)
		require.False(t, seen(t, s, "8"), "an hour is over")
		require.True(t, seen(t, s, "7"), "remembered again a moment ago")
		require.NoError(t, s.Remember(t.Context(), "other"))
		require.Equal(t, 2, s.Len(), "the 99 expired ids were freed without being read")
	})
}

// An age that is over before Remember returns leaves nothing, and no panic.
func TestMemoryStoreWithAnAgeOfNothing(t *testing.T) {
	t.Parallel()
	s := newMemory(t, 10, time.Nanosecond)
	for range 1000 {
		require.NoError(t, s.Remember(t.Context(), "a"))
	}
	require.LessOrEqual(t, s.Len(), 1)
}

func TestMemoryStoreForgets(t *testing.T) {
	t.Parallel()
	s := newMemory(t, 0, 0)
	require.NoError(t, s.Remember(t.Context(), "a"))
	require.NoError(t, s.Forget(t.Context(), "a"))
	require.NoError(t, s.Forget(t.Context(), "never there"))
	require.False(t, seen(t, s, "a"))
	require.Zero(t, s.Len())
	require.NoError(t, s.Remember(t.Context(), ""))
	require.False(t, seen(t, s, ""))
	require.ErrorIs(t, s.Remember(t.Context(), "\xff"), ErrInvalidID)
}

func TestMemoryStoreRefusesNegativeBounds(t *testing.T) {
	t.Parallel()
	_, err := NewMemoryStore(&MemoryConfig{Limit: -1})
	require.ErrorContains(t, err, "Limit ")
	_, err = NewMemoryStore(&MemoryConfig{Age: -1})
	require.ErrorContains(t, err, "Age ")
	_, err = NewMemoryStore(nil)
	require.NoError(t, err)
}

// Meant for the race detector.
func TestMemoryStoreIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := newMemory(t, 50, time.Hour)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 500 {
				id := strconv.Itoa((i * (w + 1)) % 97)
				_ = s.Remember(t.Context(), id)
				_, _ = s.Seen(t.Context(), id)
				_ = s.Forget(t.Context(), id)
				_ = s.Len()
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, s.Len(), 50)
}
