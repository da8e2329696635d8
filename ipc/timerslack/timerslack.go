// Package timerslack makes a mostly idle Go process cheaper to wake.
//
// While a Go process does anything, a thread of the runtime looks after it, which naps for 20 µs at first and goes to
// sleep when the process does. In a process that answers one message and then waits for the next, that thread would
// use a fifth of all its CPU time. With a timer slack (prctl(2), PR_SET_TIMERSLACK) of a millisecond it still does its
// work, many times less often.
package timerslack

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// slack is how much later than asked for a thread may wake, in nanoseconds.
const slack = 1_000_000

// Relax gives the slack to all threads of the process but the calling one, whose timers stay as exact as they were.
// Threads made later have that of the thread that makes them. It is meant for the start of main. Where the kernel or a
// cage refuses nothing changes.
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
