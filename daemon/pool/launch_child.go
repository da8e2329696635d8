package pool

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/ipc/quiet"
	"github.com/executord/executord/ipc/worker"
)

// Descriptors of a child beyond standard input, output and error.
const (
	channelFD  = 3
	snapshotFD = 4
)

// ChildConfig of a Child.
type ChildConfig struct {
	Path            string        // worker binary
	Args            []string      // arguments after those of the contract
	SnapshotTimeout time.Duration // for making the snapshot, default 30 s
}

// Child is a Launcher that starts workers as children of this process: over a socket pair, with the startup snapshot
// as a sealed memory file, without an environment, in a session of their own, and with nothing of this process but
// standard error, which is kept for the operator. A child dies with this process. It gets the namespaces that the kernel
// lets this process make, and is not root.
type Child struct {
	config   ChildConfig
	cage     cage
	null     *os.File
	snapshot *os.File
	forks    chan func()
	forker   sync.WaitGroup
	children sync.WaitGroup
	close    sync.Once
	mu       sync.RWMutex // held for writing by Close, for reading while a fork is under way
	closed   bool
}

// NewChild makes the startup snapshot with the worker binary, which it runs once for that. The error of a binary that
// cannot has its exit status and the end of its standard error.
func NewChild(ctx context.Context, c ChildConfig) (*Child, error) {
	return childWith(ctx, c, (*Child).snapshotBytes)
}

func childWith(ctx context.Context, c ChildConfig, snapshot snapshotMaker) (*Child, error) {
	if c.SnapshotTimeout < 0 {
		return nil, errors.New("cannot launch workers: snapshot timeout is negative")
	}
	if c.SnapshotTimeout == 0 {
		c.SnapshotTimeout = 30 * time.Second
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot launch workers: %w", err)
	}
	l := &Child{config: c, null: null, forks: make(chan func())}
	l.forker.Go(l.fork)
	if err = l.onForker(ctx, func() { l.cage = widestCage() }); err == nil {
		l.snapshot, err = l.makeSnapshot(ctx, snapshot)
	}
	if errors.Is(err, os.ErrPermission) && l.cage.drop { // the binary is in a folder of root's
		l.cage.drop = false
		l.cage.miss(worker.LayerID, err)
		l.snapshot, err = l.makeSnapshot(ctx, snapshot)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("cannot launch workers: %w", err)
	}
	return l, nil
}

// fork is the goroutine that does all forks, on one thread. The kernel kills a child with a parent-death signal when
// the thread that forked it ends (prctl(2), PR_SET_PDEATHSIG), and threads of Go end when they please unless locked.
func (l *Child) fork() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread() // all children are gone: the thread may live on or not
	for f := range l.forks {
		f()
	}
}

// Start starts one worker.
func (l *Child) Start(ctx context.Context) (Process, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	snapshot, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", l.snapshot.Fd()))
	if err != nil { // a descriptor of its own is better, for the file position comes with it
		snapshot = l.snapshot
	} else {
		defer snapshot.Close()
	}
	args := append([]string{
		"executor-worker", "-channel", fmt.Sprint(channelFD), "-snapshot", fmt.Sprint(snapshotFD),
	}, l.config.Args...)
	c, err := l.run(ctx, args, l.null, theirs, snapshot)
	if err != nil {
		ours.Close()
		return nil, err
	}
	c.conn = ours
	return c, nil
}

// run starts the binary with out as standard output and further descriptors from 3 on.
func (l *Child) run(ctx context.Context, args []string, out *os.File, more ...*os.File) (*child, error) {
	c, stderr, err := newChild()
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	attr := &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: append([]*os.File{l.null, out, stderr}, more...),
		Sys: l.cage.attr(),
	}
	var fault error
	if err = l.onForker(ctx, func() { c.proc, fault = l.startProcess(args, attr, c) }); err == nil {
		err = fault
	}
	if err != nil {
		c.stderrPipe.Close()
		return nil, fmt.Errorf("cannot start worker: %w", err)
	}
	c.pid = c.proc.Pid
	l.children.Go(c.wait)
	return c, nil
}

// onForker runs f on the forking thread, and returns when it is through, unless ctx ends before it began.
func (l *Child) onForker(ctx context.Context, f func()) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return errors.New("the launcher is closed")
	}
	done := make(chan struct{})
	select {
	case l.forks <- func() { defer close(done); f() }:
		<-done
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Child) startProcess(args []string, attr *os.ProcAttr, c *child) (*os.Process, error) {
	// What this process inherited, or a C library opened, need not be close-on-exec. Since Linux 5.11.
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	p, err := os.StartProcess(l.config.Path, args, attr)
	if err == nil {
		c.layers, c.missing = l.cage.isolation(l.cage.limit(p.Pid))
	}
	return p, err
}

// Close waits for all children, which the pool has ended.
func (l *Child) Close() error {
	l.close.Do(func() {
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
		l.children.Wait()
		close(l.forks)
		l.forker.Wait()
		l.null.Close()
		if l.snapshot != nil {
			l.snapshot.Close()
		}
	})
	return nil
}

// socketPair is a channel: the parent's end and the file of the child's.
func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make channel: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "channel of the worker")
	conn, err := quiet.New(fds[0])
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("cannot make channel: %w", err)
	}
	return conn, theirs, nil
}
