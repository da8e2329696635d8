// Package goruntime fits the Go runtime to the product's processes, which are small and mostly idle: they answer one
// message and then wait for the next.
//
// While a Go process does anything, a thread of the runtime looks after it, which naps for 20 µs at first and goes to
// sleep when the process does. It would use a fifth of the CPU time of a service that relays single messages, and has
// other threads woken to take over from one that is in a system call. And a small heap is collected after every few
// megabytes, which is one large message: that would cost as much as relaying it.
package goruntime

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// How much later than asked for threads may wake, in nanoseconds. The runtime's own lets itself nap for 10 ms where there
// is nothing to do (sysmon in runtime/proc.go).
const (
	slack    = 1_000_000
	ownSlack = 10_000_000
)

// headroom is never touched, so it takes no memory.
var headroom atomic.Pointer[[]byte]

// Headroom lets n bytes of garbage gather between two collections, whatever the size of the heap. The process may grow
// by as much.
func Headroom(n int) {
	b := make([]byte, n)
	headroom.Store(&b)
}

// Relax gives a timer slack (prctl(2), PR_SET_TIMERSLACK) to all threads of the process but the calling one, whose timers
// stay as exact as they were: ten milliseconds to the runtime's own thread, which the runtime starts first and which then
// still does its work, many times less often, and a millisecond to the others. Threads made later have the slack of the
// thread that makes them. It is meant for the start of main. Where the kernel or a cage refuses nothing changes.
func Relax() {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	var threads []int
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil {
			threads = append(threads, id)
		}
	}
	slices.Sort(threads) // the kernel numbers them as they start
	own := true
	for _, id := range threads {
		allowed := slack
		if own && id != os.Getpid() {
			own, allowed = false, ownSlack
		}
		if id != unix.Gettid() {
			_ = os.WriteFile(fmt.Sprintf("/proc/%d/timerslack_ns", id), strconv.AppendInt(nil, int64(allowed), 10), 0)
		}
	}
}
