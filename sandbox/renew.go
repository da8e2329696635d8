package sandbox

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/ipc/worker"
	"github.com/executord/executord/sandbox/v8"
)

// renewCPU is the CPU time of the isolate's thread that disposing of a used isolate and restoring the next may take. It
// takes a tenth of it, but a program can leave millions of buffers to be freed one by one; a new process costs about this
// much.
const renewCPU = 100 * time.Millisecond

// renewal is the making of room for the next program, as the second thread watches it.
type renewal struct {
	thread int32 // clock id of the isolate's thread

	mu      sync.Mutex
	on      bool
	leaving bool          // the process is being ended
	begin   time.Duration // CPU time of the thread
}

func (r *renewal) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on, r.begin = true, threadTime(r.thread)
}

// done ends the watch; after it the process is not ended any more. It does not return when that has begun.
func (r *renewal) done() {
	r.mu.Lock()
	r.on = false
	leaving := r.leaving
	r.mu.Unlock()
	if leaving {
		select {}
	}
}

// look tells whether the process has to leave, and when to look again, zero for never.
func (r *renewal) look() (leave bool, next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.on {
		return false, 0
	}
	r.leaving = threadTime(r.thread)-r.begin > renewCPU
	return r.leaving, tick
}

// renew disposes of a used isolate and restores the next, after the answer has left. An isolate that was terminated or
// ran out of memory is no different: it is gone either way.
func (s *server) renew(used *v8.Isolate) {
	giveWay()
	s.renewal.start()
	s.lookout.arm(tick)
	s.memory.lift()
	err := used.Close() // first: its memory becomes the next one's (sandbox/v8/pages.cc)
	if err == nil {
		err = s.restore()
	}
	if err == nil && s.spoilt.Swap(false) {
		old := s.analyzer // closed last: an isolate has to live at all times
		err = errors.Join(s.makeAnalyzer(), old.Close())
	}
	s.renewal.done()
	s.lookout.arm(0)
	if err == nil {
		err = s.conn.Send(worker.Ready{Restore: s.restored})
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "executor-worker: %v\n", err)
		s.exit(worker.ExitFatal)
	}
}

// giveWay lets another thread have this processor first. A message wakes its reader on the processor of whoever wrote it, as
// the kernel takes that thread to be about to wait: without this the answer is read when the next isolate is restored.
func giveWay() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// lookAtRenewal ends the process, once the result has left, where a new one will be ready sooner.
func (s *server) lookAtRenewal() time.Duration {
	leave, next := s.renewal.look()
	if leave {
		_ = s.conn.Flush()
		s.exit(worker.ExitSpent)
	}
	return next
}
