package pool

import (
	"context"
	"testing"
	"time"
)

// A pool that is busy is alive; one whose lock nobody gives back is not, and neither is one that hears nobody.
func TestAlive(t *testing.T) {
	b := childBench(t, testConfig())
	alive := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		return b.Alive(ctx)
	}
	b.works()
	if err := alive(); err != nil {
		t.Errorf("at rest: %v", err)
	}
	j := b.start("a", script("wait"))
	j.isRunning(t)
	if err := alive(); err != nil {
		t.Errorf("busy: %v", err)
	}
	j.end()
	b.Pool.mu.Lock()
	err := alive()
	b.Pool.mu.Unlock()
	if err == nil {
		t.Error("stuck, and it says that it is alive")
	}
	b.works()
	b.Pool.mu.Lock()
	long := time.Now().Add(-time.Hour)
	for m := range b.members {
		m.born = long
		m.heard.Store(long.UnixNano())
	}
	b.Pool.mu.Unlock()
	if err := b.heard(); err == nil {
		t.Error("nobody is heard, and it says that it is alive")
	}
}
