package systemd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/ipc/quiet"
	"github.com/executord/executord/ipc/worker"
)

const (
	// maxSnapshot bounds the startup snapshot.
	maxSnapshot = 16 << 20
	// leaveGrace is what a unit whose process is gone, or whose channel ended, has to be gone before it is stopped.
	leaveGrace = 2 * time.Second
	// killGrace is what the manager has to kill a unit. The first time it may have to start polkit for that.
	killGrace = 20 * time.Second
	// resultGrace is how long the manager may take to say how a unit ended. It is well under what the pool waits for a
	// process whose channel has ended: without the manager's word the worker's own still counts.
	resultGrace = time.Second
)

// UnitsConfig of Units.
type UnitsConfig struct {
	Socket string // path of executor-worker.socket
	Prefix string // what the names of worker units begin with, default "executor-worker@"
	Logger *slog.Logger
}

// Units is a pool.Launcher whose workers are units of systemd: each connection to a socket with Accept=yes (systemd.socket(5))
// starts one, with a cgroup, a user and a view of the system of its own. This process needs no privilege for it, and
// shares nothing with a worker but that connection and the read-only snapshot. Who a worker is, the kernel says
// (SCM_CREDENTIALS); how it ended, systemd does. Its methods may be called by several goroutines at once.
type Units struct {
	config   UnitsConfig
	manager  manager
	snapshot *os.File
	guarded  isolation
	running  sync.WaitGroup
}

// NewUnits has one worker make the startup snapshot, one that has never run a program.
func NewUnits(ctx context.Context, c UnitsConfig) (*Units, error) {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	m, err := dialManager(ctx, cmp.Or(c.Prefix, "executor-worker@"), c.Logger)
	if err != nil {
		return nil, fmt.Errorf("cannot launch workers as units: %w", err)
	}
	u, err := newUnits(ctx, c, m)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot launch workers as units: %w", err), m.close())
	}
	return u, nil
}

func newUnits(ctx context.Context, c UnitsConfig, m manager) (*Units, error) {
	u := &Units{config: c, manager: m}
	u.bury(ctx)
	blob, err := u.makeSnapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot make snapshot: %w", err)
	}
	u.snapshot, err = pool.SealedFile("executor-snapshot", blob)
	return u, err
}

// bury kills the workers of a service that is gone. They end with their channel; what is still there is stuck.
func (u *Units) bury(ctx context.Context) {
	names, err := u.manager.workers(ctx)
	if err != nil {
		u.config.Logger.Warn("cannot look for workers that were left behind", "error", err.Error())
	}
	for _, name := range names {
		if pid, ok := ownerOf(name); !ok || unix.Kill(pid, 0) != unix.ESRCH {
			continue
		}
		u.config.Logger.Warn("killing a worker that was left behind", "unit", name)
		if err := u.manager.kill(ctx, name); err != nil {
			u.config.Logger.Warn("cannot kill it", "unit", name, "error", err.Error())
		}
	}
}

// ownerOf is the process that a worker's unit was started for. Systemd names it after who connected: NUMBER-PID-UID, where
// later versions put more before and after the process.
func ownerOf(unit string) (pid int, ok bool) {
	_, instance, _ := strings.Cut(strings.TrimSuffix(unit, ".service"), "@")
	parts := strings.Split(instance, "-")
	if len(parts) < 3 {
		return 0, false
	}
	number, _, _ := strings.Cut(parts[len(parts)-2], "_")
	pid, err := strconv.Atoi(number)
	return pid, err == nil && pid > 1
}

func (u *Units) makeSnapshot(ctx context.Context) ([]byte, error) {
	w, err := u.begin(ctx, worker.TaskSnapshot, nil)
	if err != nil {
		return nil, err
	}
	defer w.conn.Close()
	if u.guarded, err = u.manager.isolation(ctx, w.name); err != nil {
		u.config.Logger.Warn("cannot tell what isolates workers", "unit", w.name, "error", err.Error())
	}
	defer context.AfterFunc(ctx, w.Kill)()
	blob, err := io.ReadAll(io.LimitReader(w.conn, maxSnapshot+1))
	switch {
	case err == nil && len(blob) > maxSnapshot:
		err = fmt.Errorf("it is over %d MiB", maxSnapshot>>20)
	case err == nil && len(blob) == 0:
		err = errors.New("the worker wrote none")
	}
	if err != nil {
		w.Kill()
	}
	<-w.exited
	if err == nil && (w.exit.Code != 0 || w.exit.Signal != 0) {
		err = fmt.Errorf("the worker ended by %s; its unit's journal says more", w.exit)
	}
	return blob, errors.Join(err, context.Cause(ctx))
}

// Start connects, which makes systemd start a unit, and waits until the worker has said who it is.
func (u *Units) Start(ctx context.Context) (pool.Process, error) {
	w, err := u.begin(ctx, worker.TaskServe, u.snapshot)
	if err != nil {
		return nil, fmt.Errorf("cannot start worker: %w", err)
	}
	return w, nil
}

func (u *Units) begin(ctx context.Context, task worker.Task, snapshot *os.File) (*unit, error) {
	conn, err := u.dial(ctx)
	if err != nil {
		return nil, err
	}
	w, err := u.meet(ctx, conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if err := worker.Assign(conn, task, snapshot); err != nil {
		w.Kill()
		return nil, errors.Join(err, conn.Close())
	}
	w.conn = quiet.Of(conn).(channel)
	return w, nil
}

func (u *Units) dial(ctx context.Context) (*net.UnixConn, error) {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		return errors.Join(raw.Control(func(fd uintptr) { err = worker.ListenForPeer(fd) }), err)
	}}
	conn, err := d.DialContext(ctx, "unix", u.config.Socket)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// meet learns who came, and begins to watch it.
func (u *Units) meet(ctx context.Context, conn *net.UnixConn) (*unit, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(10 * time.Second)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
	peer, err := worker.Meet(conn, deadline)
	if err != nil {
		return nil, err
	}
	pidfd, err := unix.PidfdOpen(peer.PID, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot watch worker %d: %w", peer.PID, err)
	}
	name, err := u.manager.unit(peer.PID) // after it: a number that was given to another process is in no worker's unit
	if err != nil {
		_ = unix.Close(pidfd)
		return nil, err
	}
	w := &unit{manager: u.manager, isolation: u.guarded, log: u.config.Logger.With("unit", name, "pid", peer.PID), conn: conn, name: name, pid: peer.PID, pidfd: pidfd, exited: make(chan struct{})}
	w.ending = u.manager.watch(ctx, name)
	u.running.Go(w.wait)
	return w, nil
}

// Close waits for all workers, which the pool has ended.
func (u *Units) Close() error {
	u.running.Wait()
	return errors.Join(u.manager.close(), u.snapshot.Close())
}

// channel is a worker's.
type channel interface {
	net.Conn
	CloseWrite() error
}

// unit is one worker.
type unit struct {
	manager manager
	log     *slog.Logger
	conn    channel

	isolation isolation

	name    string
	pid     int
	pidfd   int
	ending  ending
	exited  chan struct{}
	exit    pool.ExitState // set before exited is closed
	kill    sync.Once
	killing sync.WaitGroup
}

func (w *unit) Conn() net.Conn          { return w.conn }
func (w *unit) PID() int                { return w.pid }
func (w *unit) Exited() <-chan struct{} { return w.exited }
func (w *unit) Exit() pool.ExitState    { return w.exit }

// Stderr is empty: what the worker writes is in the journal, under its unit's name.
func (w *unit) Stderr() string { return "" }

// Kill has the manager kill everything in the unit. The channel is shut at once, so that the worker is of no more use
// however long that takes.
func (w *unit) Kill() {
	w.kill.Do(func() {
		select {
		case <-w.exited:
			return
		default:
		}
		_ = w.conn.CloseWrite()
		w.killing.Go(w.stop)
	})
}

// stop asks the manager, and where it refuses the kernel, which only obeys between processes of one user.
func (w *unit) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), killGrace)
	defer cancel()
	if err := w.manager.kill(ctx, w.name); err != nil {
		select {
		case <-w.exited:
			return
		default:
		}
		if signalErr := unix.PidfdSendSignal(w.pidfd, unix.SIGKILL, nil, 0); signalErr != nil {
			w.log.Error("cannot kill worker", "error", errors.Join(err, signalErr).Error())
		}
	}
}

// wait is the goroutine that sees the process end.
func (w *unit) wait() {
	awaitExit(w.pidfd)
	w.exit = w.ending.state(resultGrace)
	close(w.exited)
	w.kill.Do(func() {}) // from here on there is nothing to kill
	w.killing.Wait()
	_ = unix.Close(w.pidfd)
	if w.ending.lingers(leaveGrace) {
		ctx, cancel := context.WithTimeout(context.Background(), killGrace)
		defer cancel()
		if err := w.manager.kill(ctx, w.name); err != nil {
			w.log.Warn("worker's unit does not end", "error", err.Error())
		}
	}
}

// awaitExit waits for a process that need not be a child of this one (pidfd_open(2)).
func awaitExit(pidfd int) {
	for {
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, -1); err != unix.EINTR && n != 0 {
			return
		}
	}
}
