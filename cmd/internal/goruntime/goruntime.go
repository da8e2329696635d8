// Package goruntime fits the Go runtime to the product's processes, which are small and mostly idle: they answer one
// message and then wait for the next.
//
// While a Go process does anything, a thread of the runtime looks after it, which naps for 20 µs at first and goes to
// sleep when the process does. It would use a fifth of the CPU time of a service that relays single messages. And a
// small heap is collected after every few megabytes, which is one large message: that would cost as much as relaying
// it.
package goruntime

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// slack is how much later than asked for a thread may wake, in nanoseconds.
const slack = 1_000_000

// headroom is never touched, so it takes no memory.
var headroom atomic.Pointer[[]byte]

// Headroom lets n bytes of garbage gather between two collections, whatever the size of the heap. The process may grow
// by as much.
func Headroom(n int) {
	b := make([]byte, n)
	headroom.Store(&b)
}

// Relax gives a timer slack (prctl(2), PR_SET_TIMERSLACK) of a millisecond to all threads of the process but the calling
// one, whose timers stay as exact as they were: the runtime's own thread then still does its work, many times less often.
// Threads made later have the slack of the thread that makes them. It is meant for the start of main. Where the kernel
// or a cage refuses nothing changes.
func Relax() {
	self := strconv.Itoa(unix.Gettid())
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		if t.Name() != self {
			_ = os.WriteFile(filepath.Join("/proc", t.Name(), "timerslack_ns"), strconv.AppendInt(nil, slack, 10), 0)
		}
	}
}
