package sandbox

import (
	"sync"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// minLook keeps the watchdog from spinning on a clock that stands still just before its limit.
const minLook = 2 * time.Millisecond

// watchdog stops an execution whose clock ran out, or that is cancelled: it tells the engine, and where the engine
// does not listen it ends the process.
type watchdog struct {
	clocks *clocks
	stop   func()                                 // tells the engine; any goroutine
	die    func(reason protocol.Type, msg string) // ends the process

	mu     sync.Mutex
	over   bool          // finish was called: the engine has other work by now
	reason protocol.Type // why it was stopped; empty while it runs
	detail string

	stopped  chan struct{} // closed when reason is set
	finished chan struct{} // closed by finish
	gone     sync.WaitGroup
}

func startWatchdog(c *clocks, stop func(), die func(protocol.Type, string)) *watchdog {
	w := &watchdog{clocks: c, stop: stop, die: die, stopped: make(chan struct{}), finished: make(chan struct{})}
	w.gone.Go(w.watch)
	return w
}

// halt stops the execution for a reason of the caller's. Only the first reason counts, and none once it is over.
func (w *watchdog) halt(reason protocol.Type, detail string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || w.reason != "" {
		return
	}
	w.reason, w.detail = reason, detail
	close(w.stopped)
	w.stop()
}

// why tells the reason of the stop, empty if there was none.
func (w *watchdog) why() (protocol.Type, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason, w.detail
}

// finish ends the watch; after it the process is not ended any more.
func (w *watchdog) finish() {
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	close(w.finished)
	w.gone.Wait()
}

func (w *watchdog) watch() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.finished:
			return
		case <-w.stopped:
			w.enforce()
			return
		case <-timer.C:
			reason, next := w.clocks.expired()
			if reason != "" {
				w.halt(reason, "")
				continue
			}
			timer.Reset(max(next, minLook))
		}
	}
}

// enforce gives the engine its grace, then ends the process.
func (w *watchdog) enforce() {
	grace := time.NewTimer(worker.EngineGrace)
	defer grace.Stop()
	select {
	case <-w.finished:
	case <-grace.C:
		w.die(w.why())
	}
}
