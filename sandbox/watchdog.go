package sandbox

import (
	"sync"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// minLook keeps the lookout from spinning on a clock that stands still just before its limit.
const minLook = 2 * time.Millisecond

// watchdog stops an execution whose clock ran out, or that is cancelled: it tells the engine, and where the engine
// does not listen it ends the process. Its methods may be called from any goroutine.
type watchdog struct {
	clocks *clocks
	stop   func()                                 // tells the engine, and wakes the loop
	die    func(reason protocol.Type, msg string) // ends the process

	mu     sync.Mutex
	over   bool          // finish was called: the engine has other work by now
	dying  bool          // die was called
	reason protocol.Type // why it was stopped; empty while it runs
	detail string
	dieAt  time.Time // with reason: when the engine has had its grace
}

// halt stops the execution for a reason of the caller's. Only the first reason counts, and none once it is over.
func (w *watchdog) halt(reason protocol.Type, detail string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || w.reason != "" {
		return
	}
	w.reason, w.detail, w.dieAt = reason, detail, time.Now().Add(worker.EngineGrace)
	w.stop()
}

// why tells the reason of the stop, empty if there was none.
func (w *watchdog) why() (protocol.Type, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason, w.detail
}

// finish ends the watch; after it the process is not ended any more. It does not return when that has begun.
func (w *watchdog) finish() {
	w.mu.Lock()
	w.over = true
	dying := w.dying
	w.mu.Unlock()
	if dying {
		select {}
	}
}

// look stops what is past its limits, ends the process of what did not stop, and says when to look again, zero for
// never.
func (w *watchdog) look() time.Duration {
	reason, next := w.clocks.expired()
	if reason != "" {
		w.halt(reason, "")
	}
	w.mu.Lock()
	switch {
	case w.over:
		next = 0
	case w.reason == "":
		next = max(next, minLook)
	default:
		next = time.Until(w.dieAt)
		w.dying = next <= 0
	}
	reason, detail, dying := w.reason, w.detail, w.dying
	w.mu.Unlock()
	if dying {
		w.die(reason, detail)
	}
	return next
}
