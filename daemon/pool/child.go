package pool

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// tailBytes of a worker's standard error are kept.
	tailBytes = 8 << 10
	// drainGrace is how long standard error is read after the process is gone, for something may still hold it.
	drainGrace = 200 * time.Millisecond
)

// child is a Process that is a child of this one.
type child struct {
	conn       net.Conn
	proc       *os.Process
	pid        int
	stderrPipe *os.File
	stderr     tail
	drained    chan struct{}
	exited     chan struct{}
	exit       ExitState // set before exited is closed

	layers, missing []string // of isolation, as Isolation gives them

	mu     sync.Mutex
	reaped bool // the pid may be another's
}

// newChild makes the reading end of standard error, and returns the writing end for the process.
func newChild() (*child, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot start worker: %w", err)
	}
	return &child{stderrPipe: r, drained: make(chan struct{}), exited: make(chan struct{})}, w, nil
}

func (c *child) Conn() net.Conn          { return c.conn }
func (c *child) PID() int                { return c.pid }
func (c *child) Exited() <-chan struct{} { return c.exited }
func (c *child) Exit() ExitState         { return c.exit }
func (c *child) Stderr() string          { return c.stderr.String() }

// Isolation is what the launcher put around the process.
func (c *child) Isolation() (layers, missing []string) { return c.layers, c.missing }

// Kill kills the process, through its pidfd where the kernel has it (Linux 5.4), and its group.
func (c *child) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		_ = c.proc.Kill()
		_ = unix.Kill(-c.pid, unix.SIGKILL)
	}
}

// wait reaps the process, on a goroutine of its own.
func (c *child) wait() {
	go c.drain()
	awaitZombie(c.pid)
	c.mu.Lock()
	c.reaped = true
	_ = unix.Kill(-c.pid, unix.SIGKILL) // what it started; the zombie keeps the number of the group ours
	c.mu.Unlock()
	state, err := c.proc.Wait()
	_ = c.stderrPipe.SetReadDeadline(time.Now().Add(drainGrace))
	<-c.drained
	c.exit = exitState(state, err)
	close(c.exited)
}

// awaitZombie waits until the process ended, without reaping it.
func awaitZombie(pid int) {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return
		}
	}
}

func exitState(state *os.ProcessState, err error) ExitState {
	if err != nil {
		return ExitState{Code: -1} // somebody else reaped our child
	}
	status := state.Sys().(syscall.WaitStatus)
	e := ExitState{CPU: state.UserTime() + state.SystemTime()}
	switch code := status.ExitStatus(); {
	case status.Signaled():
		e.Signal = status.Signal()
	case faults[syscall.Signal(code-128)]:
		e.Signal = syscall.Signal(code - 128)
	default:
		e.Code = code
	}
	return e
}

// faults are the signals by which native code ends its process. The first process of a pid namespace cannot end itself by
// one, so a worker exits with 128 and the number of it.
var faults = map[syscall.Signal]bool{
	syscall.SIGILL: true, syscall.SIGTRAP: true, syscall.SIGABRT: true, syscall.SIGBUS: true, syscall.SIGFPE: true, syscall.SIGSEGV: true,
}

func (c *child) drain() {
	defer close(c.drained)
	_, _ = io.Copy(&c.stderr, c.stderrPipe)
	c.stderrPipe.Close()
}

// tail keeps the last tailBytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
	cut bool
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if n > tailBytes {
		b, t.cut = b[n-tailBytes:], true
	}
	if over := len(t.buf) + len(b) - tailBytes; over > 0 {
		t.buf, t.cut = t.buf[:copy(t.buf, t.buf[over:])], true
	}
	t.buf = append(t.buf, b...)
	return n, nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut {
		return "…" + string(t.buf)
	}
	return string(t.buf)
}
