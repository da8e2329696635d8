package v8

// #include "engine.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// Retain has values that leave as results keep functions, and what can be iterated, as handles, whose ids begin with prefix
// and a dot. It comes before Run.
func (i *Isolate) Retain(prefix string) { C.ex_retain(i.p, view(prefix)) }

// Handles is the number of the newest handle; they count up from 1. Only for the goroutine that uses the isolate.
func (i *Isolate) Handles() uint64 { return uint64(C.ex_handles(i.p)) }

// Release forgets handles. Numbers that there are not are passed over.
func (i *Isolate) Release(handles []uint64) error {
	if len(handles) == 0 {
		return nil
	}
	if err := i.enter(); err != nil {
		return err
	}
	defer i.inside.Unlock()
	C.ex_release(i.p, (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(handles))), C.size_t(len(handles)))
	return nil
}

// Invoke calls a handle for a task: a function, or with a method that of an iterator. Args are encoded values. What comes of
// it is Invoked's and InvocationValue's; an error of KindInput is about the arguments, one of KindHandle says that it was
// released.
func (i *Isolate) Invoke(task, handle uint64, method string, args [][]byte) error {
	if err := i.enter(); err != nil {
		return err
	}
	defer i.inside.Unlock()
	var pinned runtime.Pinner
	defer pinned.Unpin()
	views := make([]C.ex_view, len(args))
	for n, arg := range args {
		pinned.Pin(unsafe.SliceData(arg))
		views[n] = viewBytes(arg)
	}
	e := C.ex_invoke(i.p, C.uint64_t(task), C.uint64_t(handle), view(method), unsafe.SliceData(views), C.size_t(len(views)))
	return takeError(&e)
}

// Invoked is the state of an invocation.
func (i *Isolate) Invoked(task uint64) (State, error) {
	if err := i.enter(); err != nil {
		return Stopped, err
	}
	defer i.inside.Unlock()
	return State(C.ex_invoked(i.p, C.uint64_t(task))), nil
}

// InvocationValue is Value of an invocation, once.
func (i *Isolate) InvocationValue(task uint64, maxBytes int64) ([]byte, error) {
	return i.result(func() C.ex_result { return C.ex_invocation_value(i.p, C.uint64_t(task), C.uint64_t(maxBytes)) })
}

// Task is the task that the code which calls a method of the Host belongs to, 0 where that is not known. It is for those
// methods only.
func (i *Isolate) Task() uint64 { return uint64(C.ex_task(i.p)) }
