package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/ipc/worker"
	"github.com/executord/executord/sandbox/v8"
)

// ErrUsage says that the worker was started wrongly.
var ErrUsage = errors.New("cannot serve: no channel was given (executord starts workers itself)")

// ExitStatus is the status that a worker ends with for an error of Run.
func ExitStatus(err error) int {
	if errors.Is(err, ErrUsage) {
		return worker.ExitUsage
	}
	return worker.ExitFatal
}

// Run serves on inherited descriptors: the socket to the parent, and the startup snapshot (negative: none). It starts
// V8 and must be called on the main goroutine, pinned to its thread.
func Run(channel, snapshot int) error {
	if channel < 0 {
		return ErrUsage
	}
	socket, err := channelSocket(channel)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUsage, err)
	}
	beNice()
	gate := v8.Init(channel)
	blob, err := mapSnapshot(snapshot)
	if err != nil {
		return err
	}
	conn, err := worker.NewConn(socket, worker.Options{Side: worker.Worker, WriteLock: gate, Unwritten: gate.Unwritten})
	if err != nil {
		return err
	}
	return Serve(conn, socket, blob)
}

// unitChannel is the first descriptor that systemd hands to a service (SD_LISTEN_FDS_START, sd_listen_fds(3)).
const unitChannel = 3

// RunUnit serves as a unit of systemd, which accepted the connection of the parent and started this process for it. The
// parent says over it what to do. Like Run it must be called on the main goroutine.
func RunUnit() error {
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) || os.Getenv("LISTEN_FDS") != "1" {
		return fmt.Errorf("%w: systemd passed no connection", ErrUsage)
	}
	task, snapshot, err := worker.Introduce(unitChannel)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUsage, err)
	case task == worker.TaskServe:
		return Run(unitChannel, snapshot)
	case task == worker.TaskSnapshot:
		return sendSnapshot()
	}
	return fmt.Errorf("%w: the parent wants %q", ErrUsage, task)
}

func sendSnapshot() error {
	file, err := MakeSnapshot()
	if err != nil {
		return err
	}
	channel := os.NewFile(unitChannel, "channel")
	if _, err := channel.Write(file); err != nil {
		return err
	}
	return channel.Close()
}

// niceness is how much more a worker's thread gives way than the service, which has to be on time when all workers
// compute.
const niceness = 5

// beNice lowers the priority of the calling thread, which programs run on, and of those that it will make.
func beNice() {
	if own, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil { // 20 minus the nice value
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, min(20-own+niceness, 19)) // refused in some cages: then it competes
	}
}

// channelSocket takes a descriptor of its own of the channel: the handlers of fatal conditions write to the inherited
// one, which stays open.
func channelSocket(fd int) (*worker.Socket, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return worker.NewSocket(own)
}

// maxSnapshot is far over what a snapshot may weigh.
const maxSnapshot = 64 << 20

// mapSnapshot maps the startup snapshot, for the life of the process: workers share its memory.
func mapSnapshot(fd int) ([]byte, error) {
	if fd < 0 {
		return nil, nil
	}
	f := os.NewFile(uintptr(fd), "snapshot")
	if f == nil {
		return nil, errors.New("cannot read the startup snapshot: no such descriptor")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot read the startup snapshot: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("cannot read the startup snapshot: it is no file")
	}
	size := min(info.Size(), maxSnapshot)
	if size == 0 {
		return nil, nil
	}
	file, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("cannot read the startup snapshot: %w", os.NewSyscallError("mmap", err))
	}
	return file, nil
}
