package executor

import (
	"runtime"
	"testing"

	"github.com/executord/executord/ipc/protocol"
)

// deaf is a Retainer of nothing.
type deaf struct{ Retainer }

func (deaf) Release(string, []string) int { return 0 }

// TestHandleMadeAgain: the collector may tell of a handle after another was made in its place. That one stays.
func TestHandleMadeAgain(t *testing.T) {
	s := NewHandles(deaf{}, Request{})
	h := s.Of(protocol.Handle{ID: "k.1"})
	s.drop("k.1")
	if s.releasing != nil || len(s.dropped) > 0 || s.Of(protocol.Handle{ID: "k.1"}) != h {
		t.Error("the handle was released while something refers to it")
	}
	runtime.KeepAlive(h)
	s.drop("k.2") // was released
	if s.releasing != nil || len(s.dropped) > 0 {
		t.Error("a handle was released twice")
	}
}
