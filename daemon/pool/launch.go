package pool

import (
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Launcher starts worker processes. Its methods may be called by several goroutines at once.
type Launcher interface {
	// Start starts one worker. It returns once the process exists, not when it is ready. Ctx bounds only the start.
	Start(ctx context.Context) (Process, error)
	// Close waits for all processes to be reaped and frees what Start needs. The pool has ended them before.
	Close() error
}

// Process is one worker process. Its methods may be called by several goroutines at once.
type Process interface {
	// Conn is the parent's end of the channel. Whoever started the process closes it.
	Conn() net.Conn
	PID() int
	// Isolation is what the launcher put around the process, by the names of ipc/worker, and what it could not, each as
	// "NAME: REASON". The rest a worker does itself and tells.
	Isolation() (layers, missing []string)
	// Kill ends the process and its group at once. It does nothing to one that is gone.
	Kill()
	// Exited is closed once the process was reaped; Exit and Stderr are final then.
	Exited() <-chan struct{}
	Exit() ExitState
	// Stderr is the end of what the process wrote there, for the operator.
	Stderr() string
}

// ExitState says how a process ended.
type ExitState struct {
	Code   int            // exit status, when Signal is 0
	Signal syscall.Signal // that ended it, or 0
	CPU    time.Duration  // CPU time of the whole process in its life, 0 when unknown
	Cause  string         // what the service manager says of its end where it was the one: "oom-kill", "watchdog", "timeout"
}

// String is the reason as protocol.Error carries it: "exit:3", "signal:SIGSEGV" or "oom_kill".
func (e ExitState) String() string {
	if e.Cause != "" {
		return strings.ReplaceAll(e.Cause, "-", "_")
	}
	if e.Signal == 0 {
		return fmt.Sprintf("exit:%d", e.Code)
	}
	if name := unix.SignalName(e.Signal); name != "" {
		return "signal:" + name
	}
	return fmt.Sprintf("signal:%d", int(e.Signal))
}
