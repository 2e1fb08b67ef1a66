package txidem

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// brokenStore fails where it is told to, and is a memory store elsewhere.
type brokenStore struct {
	*MemoryStore
	seenErr, rememberErr error
}

func (b *brokenStore) Seen(ctx context.Context, id string) (bool, error) {
	if b.seenErr != nil {
		return false, b.seenErr
	}
	return b.MemoryStore.Seen(ctx, id)
}

func (b *brokenStore) Remember(ctx context.Context, id string) error {
	if b.rememberErr != nil {
		return b.rememberErr
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.MemoryStore.Remember(ctx, id)
}

// seenHarness wraps a counting handler over a brokenStore and keeps what the observer was told.
type seenHarness struct {
	store   *brokenStore
	calls   int
	result  error
	told    []DeliveryEvent
	deliver func(ctx context.Context, id string) error
}

func newSeenHarness(t *testing.T) *seenHarness {
	t.Helper()
	h := &seenHarness{store: &brokenStore{MemoryStore: newMemory(t, 0, 0)}}
	h.deliver = WrapSeen(h.store, func(id string) string { return id }, func(context.Context, string) error {
		h.calls++
		return h.result
	}, WithObserver(func(_ context.Context, d DeliveryEvent) { h.told = append(h.told, d) }))
	return h
}

func (h *seenHarness) last() DeliveryEvent { return h.told[len(h.told)-1] }

func TestWrapSeenFailedFirstAttempt(t *testing.T) {
	t.Parallel()
	h := newSeenHarness(t)
	h.result = errors.New("first attempt")
	require.Equal(t, h.result, h.deliver(t.Context(), "m"), "the handler's own error comes back")
	require.Zero(t, h.last().Outcome)
	h.result = nil
	require.NoError(t, h.deliver(t.Context(), "m"))
	require.Equal(t, Processed, h.last().Outcome)
	require.NoError(t, h.deliver(t.Context(), "m"))
	require.Equal(t, Duplicate, h.last().Outcome)
	require.Zero(t, h.last().Attempts)
	require.Equal(t, 2, h.calls)
	require.Len(t, h.told, 3, "the observer is told once of each delivery")
}

func TestWrapSeenRememberFails(t *testing.T) {
	t.Parallel()
	h := newSeenHarness(t)
	h.store.rememberErr = errors.New("store is away")
	require.NoError(t, h.deliver(t.Context(), "m"), "the work is done: ack")
	require.Equal(t, h.store.rememberErr, h.last().RememberErr)
	h.store.rememberErr = nil
	require.NoError(t, h.deliver(t.Context(), "m"))
	require.Equal(t, 2, h.calls, "it was not remembered, so it runs again")
	require.NoError(t, h.last().RememberErr)
}

func TestWrapSeenSeenFails(t *testing.T) {
	t.Parallel()
	h := newSeenHarness(t)
	h.store.seenErr = errors.New("store is away")
	require.ErrorIs(t, h.deliver(t.Context(), "m"), h.store.seenErr)
	require.Zero(t, h.calls, "no run without a look")
}

func TestWrapSeenRemembersAfterTheContextEnded(t *testing.T) {
	t.Parallel()
	s := &brokenStore{MemoryStore: newMemory(t, 0, 0)}
	ctx, cancel := context.WithCancel(t.Context())
	deliver := WrapSeen(s, func(id string) string { return id }, func(context.Context, string) error {
		cancel()
		return nil
	})
	require.NoError(t, deliver(ctx, "m"))
	require.True(t, seen(t, s, "m"))
}

func TestWrapSeenUnguarded(t *testing.T) {
	t.Parallel()
	h := newSeenHarness(t)
	require.NoError(t, h.deliver(t.Context(), ""))
	require.NoError(t, h.deliver(t.Context(), ""))
	require.Equal(t, 2, h.calls)
	require.Equal(t, Unguarded, h.last().Outcome)
	h.result = errors.New("no")
	require.Error(t, h.deliver(t.Context(), ""))
	require.Zero(t, h.last().Outcome, "an error and an outcome exclude each other")
}

func TestWrapSeenPanicAndGoexit(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(){
		"panic":  func() { panic("the handler's own value") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMemory(t, 0, 0)
			var told []DeliveryEvent
			deliver := WrapSeen(s, func(id string) string { return id }, func(context.Context, string) error {
				leave()
				return nil
			}, WithObserver(func(_ context.Context, d DeliveryEvent) { told = append(told, d) }))
			var value any
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { value = recover() }()
				_ = deliver(t.Context(), "m")
			}()
			<-done
			if name == "panic" {
				require.Equal(t, "the handler's own value", value)
			}
			require.False(t, seen(t, s, "m"))
			require.Len(t, told, 1)
			require.ErrorIs(t, told[0].Err, errUnfinished)
		})
	}
}

func TestObserverPanicChangesNothing(t *testing.T) {
	t.Parallel()
	s := newMemory(t, 0, 0)
	deliver := WrapSeen(s, func(id string) string { return id }, func(context.Context, string) error { return nil },
		WithObserver(func(context.Context, DeliveryEvent) { panic("observer") }))
	require.NoError(t, deliver(t.Context(), "m"))
	require.True(t, seen(t, s, "m"))
}
