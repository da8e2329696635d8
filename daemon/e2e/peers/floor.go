package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/daemon/e2e/gauge"
)

// floor is what a tool call costs at least where a service stands between client and worker: a message goes from the
// worker's process to the service's, to the client's and back, by blocking system calls on unix sockets, and nobody does
// anything with it.
type floor struct {
	cpuMs  float64 // of the two processes that stand for service and worker; the client's is not counted, as everywhere here
	wallMs float64
}

const (
	hopEnv    = "EXECUTORD_PEERS_HOP" // says what a process of this program stands for
	hopBytes  = 128                   // of a message, about those of a call or an answer
	hopRounds = 500
	hopTries  = 10 // the cheapest counts
)

// measureFloor has messages go there and back.
func measureFloor(ctx context.Context) (floor, error) {
	var ends [2][2]*os.File // client and service, service and worker
	for i := range ends {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return floor{}, fmt.Errorf("cannot measure hops: %w", err)
		}
		for k, fd := range fds {
			ends[i][k] = os.NewFile(uintptr(fd), "hop")
			defer ends[i][k].Close()
		}
	}
	service, err := startHop(ctx, "service", ends[0][1], ends[1][0])
	if err != nil {
		return floor{}, err
	}
	worker, err := startHop(ctx, "worker", ends[1][1])
	if err != nil {
		return floor{}, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fd := int(ends[0][0].Fd())
	pids := []int{service.Process.Pid, worker.Process.Pid}
	least := floor{math.Inf(1), math.Inf(1)}
	for range hopTries {
		cpu, begin := gauge.ProcessCPU(pids...), time.Now()
		for range hopRounds {
			if !hopSend(fd) || !hopReceive(fd) {
				return floor{}, errors.New("cannot measure hops: a process has ended")
			}
		}
		least.wallMs = min(least.wallMs, gauge.Milliseconds(time.Since(begin))/hopRounds)
		least.cpuMs = min(least.cpuMs, gauge.Milliseconds(gauge.ProcessCPU(pids...)-cpu)/hopRounds)
	}
	return least, nil
}

// startHop starts this program as one of the two processes. It ends when what it was given is closed, with ctx at the
// latest.
func startHop(ctx context.Context, name string, files ...*os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self)
	c.Env = []string{hopEnv + "=" + name, "GODEBUG=asyncpreemptoff=1"} // nothing is to interrupt its system calls
	c.ExtraFiles = files
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("cannot measure hops: %w", err)
	}
	go func() { _ = c.Wait() }()
	return c, nil
}

// hop is the life of such a process: the service passes messages on, the worker answers them.
func hop(name string) {
	runtime.LockOSThread()
	const client, worker = 3, 4
	for hopReceive(client) {
		if name == "service" && (!hopSend(worker) || !hopReceive(worker)) || !hopSend(client) {
			return
		}
	}
}

func hopReceive(fd int) bool {
	var message [hopBytes]byte
	for have := 0; have < hopBytes; {
		n, err := hopCall(unix.SYS_READ, fd, message[have:])
		if err != nil || n == 0 {
			return false
		}
		have += n
	}
	return true
}

func hopSend(fd int) bool {
	var message [hopBytes]byte
	n, err := hopCall(unix.SYS_WRITE, fd, message[:])
	return err == nil && n == hopBytes
}

// hopCall reads or writes without Go's scheduler, which would cost as much again.
func hopCall(call uintptr, fd int, b []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
			continue
		}
		return 0, errno
	}
}
