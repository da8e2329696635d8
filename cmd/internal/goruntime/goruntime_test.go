package goruntime

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRelax(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := of(t, unix.Gettid())
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	Relax()
	if after := of(t, unix.Gettid()); after != before {
		t.Errorf("the calling thread's slack became %s", after)
	}
	own := 0
	for _, x := range threads {
		switch of(t, x.Name()) {
		case fmt.Sprint(ownSlack):
			own++
			if x.Name() == fmt.Sprint(os.Getpid()) {
				t.Error("the main thread was taken for the runtime's own")
			}
		case fmt.Sprint(slack), "":
		default:
			if x.Name() != fmt.Sprint(unix.Gettid()) {
				t.Errorf("thread %s has a slack of %s", x.Name(), of(t, x.Name()))
			}
		}
	}
	if own == 0 {
		t.Errorf("none of %d threads has the slack of the runtime's own", len(threads))
	}
}

func of(t *testing.T, tid any) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%v/timerslack_ns", tid))
	if os.IsNotExist(err) {
		return "" // the thread has ended
	}
	if err != nil {
		t.Skipf("this kernel does not tell: %v", err)
	}
	return strings.TrimSpace(string(b))
}

// TestHeadroom: garbage as large as a few messages is not collected at once.
func TestHeadroom(t *testing.T) {
	Headroom(64 << 20)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		garbage = make([]byte, 1<<20)
	}
	runtime.ReadMemStats(&after)
	if n := after.NumGC - before.NumGC; n > 1 {
		t.Errorf("%d collections for 20 MiB", n)
	}
	Headroom(0)
}

var garbage []byte
