// Package confine takes from a worker process what it does not need, so that native code of an attacker who broke V8
// finds nothing to go on with: no files, no network, no other process, no privilege, and few system calls.
//
// It does so in two steps. Before Go starts, while there is one thread, a constructor (early.c) gives up the file system,
// new privileges, capabilities and being traced; it acts in a process that was started with -channel or -unit, and in no
// other. When the engine is warm Seal leaves the system calls of package calls alone, for all threads at once.
//
// Namespaces that only a parent can make are the launcher's (daemon/pool). Package sandbox calls this one; what is in force
// goes to the parent by the names in ipc/worker. It must never fail quietly, nor end the process over a layer that the
// kernel does not have: whether that will do is the operator's decision.
package confine

// #include "early.h"
import "C"

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/ipc/worker"
	"github.com/executord/executord/sandbox/confine/calls"
)

var (
	errNoWorker = errors.New("the process was not started as a worker")
	errLenient  = errors.New("calls that are not in the list are logged only")
)

// exactSlack is the timer slack of Linux where nobody asks for another, in nanoseconds.
const exactSlack = 50_000

// Outcome says what is in force, by the names of ipc/worker, and what is not, each as "NAME: REASON".
type Outcome struct{ Layers, Missing []string }

func (o *Outcome) note(layer string, err error) {
	if err == nil {
		o.Layers = append(o.Layers, layer)
	} else {
		o.Missing = append(o.Missing, layer+": "+err.Error())
	}
}

// Statm is /proc/self/statm, opened before the file system went away; nil where there is none. Its caller closes it.
func Statm() *os.File {
	if !begun() {
		f, _ := os.Open("/proc/self/statm")
		return f
	}
	if C.early_statm < 0 {
		return nil
	}
	return os.NewFile(uintptr(C.early_statm), "statm")
}

// Punctual gives the calling thread exact timers, as all threads of a worker have lazy ones otherwise, and those that it
// will start with it.
func Punctual() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, exactSlack, 0, 0, 0) // never refused
}

// Seal leaves all threads of the process, and those to come, the system calls of package calls. It says what is in force
// altogether; a filter that refuses nothing is not.
func Seal(otherwise calls.Otherwise) Outcome {
	o := early()
	err := install(calls.Filter(os.Getpid(), otherwise))
	if err == nil && otherwise != calls.Kill {
		err = errLenient
	}
	o.note(worker.LayerSeccomp, err)
	return o
}

func begun() bool { return C.early_begun != 0 }

// early reports on early.c.
func early() (o Outcome) {
	for step, layer := range [C.EARLY_STEPS]string{
		C.EARLY_NO_NEW_PRIVILEGES: worker.LayerNoNewPrivileges, C.EARLY_KEYRING: worker.LayerKeyring,
		C.EARLY_ROOT: worker.LayerRoot, C.EARLY_LANDLOCK: worker.LayerLandlock,
		C.EARLY_CAPABILITIES: worker.LayerCapabilities, C.EARLY_DUMP: worker.LayerDump,
	} {
		var err error
		if e := syscall.Errno(C.early_results[step]); e != 0 {
			err = e
		}
		if !begun() {
			err = errNoWorker
		}
		o.note(layer, err)
	}
	return o
}

// install gives a filter to all threads (seccomp(2), SECCOMP_FILTER_FLAG_TSYNC, since Linux 3.17).
func install(filter []unix.SockFilter) error {
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	switch {
	case errno != 0:
		return errno
	case thread != 0: // has a filter of its own
		return unix.ESRCH
	}
	return nil
}
