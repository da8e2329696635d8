package v8

// #cgo CXXFLAGS: -std=c++20 -O2 -fno-rtti -fno-strict-aliasing -fno-omit-frame-pointer -fPIC -Wall -Wno-unused-function -Wno-unused-result -I${SRCDIR}/include -DV8_COMPRESS_POINTERS -DV8_31BIT_SMIS_ON_64BIT_ARCH -DV8_ENABLE_SANDBOX
// #cgo CFLAGS: -O2 -fno-omit-frame-pointer -Wall
// #cgo LDFLAGS: -static-libstdc++ -static-libgcc -Wl,--wrap=mmap64 -Wl,--wrap=munmap -Wl,--wrap=mprotect -Wl,--wrap=madvise
// #include <stdlib.h>
// #include "engine.h"
import "C"

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	_ "github.com/tommie/v8go/deps/include" // keeps the headers' module in go.mod
)

// Flags that every process runs V8 with. With loop unrolling on, V8 13.6 drops the stack check of some allocation
// loops, which then ignore termination; see docs/decisions/0001-v8-and-its-binding.md. Those after it are what V8 13.6
// has finished or nearly so, and later versions have on; see docs/decisions/0010-later-webassembly.md for the last.
var Flags = []string{
	"--no-turboshaft-loop-unrolling",
	"--no-wasm-loop-unrolling",
	"--enable-sharedarraybuffer-per-context",
	"--js-explicit-resource-management",
	"--js-float16array",
	"--experimental-wasm-jspi",
	"--experimental-wasm-rab-integration",
}

// Gate is a lock that Go code and the C++ handlers of fatal conditions share, so that a last word never lands inside
// a frame which is being written, nor before one that waits. It is held while frames are written, which may
// have to wait for the parent.
type Gate struct{ shared *C.ex_gate }

// Lock waits for the gate. It spins politely: the channel has one writer at a time, so there is nobody to wait for but a
// handler that is about to end the process.
func (g Gate) Lock() {
	for !atomic.CompareAndSwapInt32((*int32)(unsafe.Pointer(&g.shared.taken)), 0, 1) {
		runtime.Gosched()
	}
}

// Unlock opens the gate.
func (g Gate) Unlock() { atomic.StoreInt32((*int32)(unsafe.Pointer(&g.shared.taken)), 0) }

// Unwritten tells whether frames wait to be written. A last word lets them go first, for a tenth of a second.
func (g Gate) Unwritten(waiting bool) {
	var word int32
	if waiting {
		word = 1
	}
	atomic.StoreInt32((*int32)(unsafe.Pointer(&g.shared.waiting)), word)
}

var (
	initOnce sync.Once
	gate     Gate
)

// Init starts V8 once per process; later calls only return the gate. When V8 cannot go on it writes a last word, a
// frame of ipc/worker, to the descriptor channel (none if negative) and ends the process with a status of ipc/worker.
func Init(channel int) Gate {
	initOnce.Do(func() {
		gate = Gate{(*C.ex_gate)(C.calloc(1, C.sizeof_ex_gate))}
		flags := C.CString(strings.Join(Flags, " "))
		defer C.free(unsafe.Pointer(flags))
		C.ex_init(flags, C.int(channel), gate.shared)
	})
	return gate
}

// SetExecution tells the last word which execution is under way.
func SetExecution(id uint64) { C.ex_set_execution(C.uint64_t(id)) }

// Version is V8's own, as "13.6.233.10".
func Version() string { return C.GoString(C.ex_version()) }

// VersionTag covers V8's version and the flags that change what compiled code looks like. Init must have run.
func VersionTag() uint64 { return uint64(C.ex_version_tag()) }

// Background tells whether V8 works on something in the background that may still post a task, as an asynchronous
// compilation of WebAssembly, and counts what it ever began to do there: while that stays the same, nothing new did.
func Background() (begun uint64, busy bool) {
	begun = uint64(C.ex_background_begun()) // first: what begins meanwhile is seen the next time
	return begun, C.ex_background_busy() != 0
}

// pages is memory that waits for the next isolate: its bytes, those of them that are not zero, which none may be, and how often
// the kernel was asked to change mappings. It takes reading all of it.
type pages struct{ kept, dirty, asked int }

func readPages() pages {
	p := C.ex_pages_read()
	return pages{int(p.kept), int(p.dirty), int(p.asked)}
}

// MakeSnapshot evaluates the library and then the warm-up script in a fresh context and returns that state as a
// startup snapshot. The process should not run programs afterwards: it is meant to be thrown away.
func MakeSnapshot(library, warm string) ([]byte, error) {
	Init(-1)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := C.ex_snapshot_make(view(library), view(warm))
	if err := takeError(&r.error); err != nil {
		return nil, err
	}
	defer C.ex_buf_free(r.value)
	return C.GoBytes(unsafe.Pointer(r.value.p), C.int(r.value.n)), nil
}

// Kind tells what a failure is.
type Kind int

// The kinds of failure.
const (
	KindException      = Kind(C.EX_EXCEPTION)      // the program threw
	KindSyntax         = Kind(C.EX_SYNTAX)         // the text does not parse
	KindModule         = Kind(C.EX_MODULE)         // the module graph does not resolve or link
	KindTerminated     = Kind(C.EX_TERMINATED)     // Terminate was called
	KindMemory         = Kind(C.EX_MEMORY)         // the heap or buffer limit was hit
	KindUnserializable = Kind(C.EX_UNSERIALIZABLE) // the value cannot be encoded
	KindTooLarge       = Kind(C.EX_TOO_LARGE)      // the encoded value is over its bound
	KindInternal       = Kind(C.EX_INTERNAL)       // the binding or the library is at fault
	KindInput          = Kind(C.EX_INPUT)          // the input cannot be decoded
	KindHandle         = Kind(C.EX_HANDLE)         // there is no such handle
)

// Error is a failure of a program or of the engine. Line and Column are those of the submitted text and count from 1;
// 0 means unknown. Cause and Thrown are encoded values, nil where absent.
type Error struct {
	Kind                       Kind
	Name, Message, Stack, File string
	Line, Column               int
	Cause, Thrown              []byte
}

func (e *Error) Error() string {
	if e.Name != "" {
		return e.Name + ": " + e.Message
	}
	return e.Message
}

// ErrBusy and ErrClosed refuse the use of an isolate that another goroutine is inside of, or that is gone.
var (
	ErrBusy   = errors.New("cannot use the isolate: another goroutine is inside it")
	ErrClosed = errors.New("cannot use the isolate: it is closed")
)

func view(s string) C.ex_view {
	return C.ex_view{p: (*C.char)(unsafe.Pointer(unsafe.StringData(s))), n: C.size_t(len(s))}
}

func viewBytes(b []byte) C.ex_view { return view(unsafe.String(unsafe.SliceData(b), len(b))) }

// text copies a borrowed view.
func text(v C.ex_view) string { return C.GoStringN(v.p, C.int(v.n)) }

func takeString(b C.ex_buf) string { return C.GoStringN(b.p, C.int(b.n)) }

func takeBytes(b C.ex_buf) []byte {
	if b.p == nil {
		return nil
	}
	return C.GoBytes(unsafe.Pointer(b.p), C.int(b.n))
}

// takeError copies and frees a C error; nil where there is none.
func takeError(e *C.ex_error) error {
	if e.kind == C.EX_NONE {
		return nil
	}
	defer C.ex_error_free(e)
	return &Error{
		Kind: Kind(e.kind), Name: takeString(e.name), Message: takeString(e.message), Stack: takeString(e.stack),
		File: takeString(e.file), Line: int(e.line), Column: int(e.column), Cause: takeBytes(e.cause), Thrown: takeBytes(e.thrown),
	}
}
