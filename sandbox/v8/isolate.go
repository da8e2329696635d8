package v8

// #include <stdlib.h>
// #include "engine.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime/cgo"
	"sync"
	"unsafe"
)

// Snapshot is a startup snapshot in memory that V8 may keep using. It must outlive its isolates.
type Snapshot struct{ data C.ex_view }

// MapSnapshot takes a blob that MakeSnapshot returned, as LoadSnapshot does, from memory that is not Go's, aligned to
// eight bytes, and stays there for the life of the process. Close must not be called.
func MapSnapshot(blob []byte) *Snapshot { return &Snapshot{viewBytes(blob)} }

// LoadSnapshot copies a blob that MakeSnapshot returned, from a process of the same Version and Flags; V8 ends the
// process if it is of another.
func LoadSnapshot(blob []byte) *Snapshot {
	return &Snapshot{C.ex_view{p: (*C.char)(C.CBytes(blob)), n: C.size_t(len(blob))}}
}

// Close frees the memory, once no isolate uses it any more.
func (s *Snapshot) Close() {
	C.free(unsafe.Pointer(s.data.p))
	s.data = C.ex_view{}
}

// Config of an isolate. HeapBytes and BufferBytes must be positive.
type Config struct {
	Snapshot    *Snapshot // restored, with the library in it; nil: Library is evaluated
	Library     string    // its value is function (native) => internals
	Plain       bool      // Library is evaluated in any case, and its value is any function, for Call
	Cache       []byte    // code cache of a Plain isolate's Library, where MapSnapshot's blob lies; may be empty
	HeapBytes   int64     // JavaScript heap
	BufferBytes int64     // ArrayBuffers
	AllowEval   bool      // code from strings
	AllowWasm   bool      // WebAssembly code
	Host        Host      // nil with Plain
}

// Host is what a program's isolate asks of the outside, on the goroutine that is inside the isolate. No method may use
// the isolate but for Terminate and Task.
type Host interface {
	// ToolCall starts a call; its result comes by Isolate.Resolve with the same id. args is JSON text, an array of
	// encoded values, and is gone when the method returns. False means that the call is refused and the isolate is being
	// terminated.
	ToolCall(id uint64, provider string, path []string, args []byte) bool
	// Log takes one console line.
	Log(level, text string)
	// TimerStart makes a timer whose firings come by Isolate.Fire; ms is not negative.
	TimerStart(ms float64, repeat bool) uint32
	TimerStop(id uint32)
	// ResolveModule finds a module; typ is the value of the import attribute "type", empty without one. An error's text
	// is what the program sees.
	ResolveModule(specifier, referrer, typ string) (ModuleText, error)
	// Op performs an operation for the library. Arguments are nil, float64, string or []byte (borrowed: valid during
	// the call); so is the result. An error's text is "Name: message", which the library turns into its exception.
	Op(args []any) (any, error)
	// Part gives the text of a part of the library and its code cache, which may be empty. Both must stay as they are
	// for the life of the process.
	Part(name string) (Part, bool)
	// Hint gives what to add to the message of the ReferenceError for a name that is not defined; empty for nothing.
	Hint(name string) string
	// MapPosition translates a position in compiled text to one in submitted text.
	MapPosition(file string, line, column int) (int, int)
}

// NoServices is embedded by a Host that has no operations and no parts.
type NoServices struct{}

// Op fails.
func (NoServices) Op([]any) (any, error) {
	return nil, errors.New("Error: this host performs no operations")
}

// Hint knows nothing.
func (NoServices) Hint(string) string { return "" }

// Part finds nothing.
func (NoServices) Part(string) (Part, bool) { return Part{}, false }

// Part is a part of the library in C memory, made by NewPart.
type Part struct{ text, cache C.ex_view }

// NewPart copies a part's text, which must be ASCII, to memory that is never freed. Its code cache lies where MapSnapshot's
// blob does.
func NewPart(text string, cache []byte) Part {
	return Part{C.ex_view{p: C.CString(text), n: C.size_t(len(text))}, viewBytes(cache)}
}

// ModuleKind tells how a module's text is read.
type ModuleKind int

// The kinds of module.
const (
	ModuleESM   = ModuleKind(C.EX_MODULE_ESM)
	ModuleJSON  = ModuleKind(C.EX_MODULE_JSON)
	ModulePlain = ModuleKind(C.EX_MODULE_TEXT)
	ModuleBytes = ModuleKind(C.EX_MODULE_BYTES)
	// ModuleCommonJS is the body of a function of module, exports, require, __filename and __dirname.
	ModuleCommonJS = ModuleKind(C.EX_MODULE_COMMONJS)
)

// ModuleText is a resolved module. Key names it: two specifiers with one key are one module.
type ModuleText struct {
	Kind   ModuleKind
	Key    string
	Source string
	Names  []string // what a CommonJS module exports beside the default; no name has a line end in it
}

// State of a run.
type State int

// The states that Drain reports.
const (
	Pending = State(C.EX_PENDING) // the program waits for something
	Settled = State(C.EX_SETTLED) // Value has the outcome
	Stopped = State(C.EX_STOPPED) // terminated, or out of memory
)

// living counts the isolates of the process. V8 shares one read-only heap between them, which is part of the snapshot:
// isolates of two snapshots, or with and without one, cannot live at the same time (checked on V8 13.6).
var living population

type population struct {
	mu       sync.Mutex
	n        int
	snapshot *Snapshot
}

func (p *population) add(s *Snapshot) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n > 0 && p.snapshot != s {
		return errors.New("cannot make an isolate: those alive were restored from another snapshot")
	}
	p.n++
	p.snapshot = s
	return nil
}

func (p *population) remove() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n--
}

// Isolate is one V8 isolate with one context.
type Isolate struct {
	inside sync.Mutex // held by the goroutine that is inside
	alive  sync.Mutex // guards p against Close while Terminate or HeapBytes use it
	p      *C.ex_isolate
	handle cgo.Handle
}

// New makes an isolate.
func New(c Config) (*Isolate, error) {
	if c.HeapBytes <= 0 || c.BufferBytes <= 0 {
		return nil, fmt.Errorf("cannot make an isolate: heap %d and buffers %d bytes must be positive", c.HeapBytes, c.BufferBytes)
	}
	Init(-1)
	if err := living.add(c.Snapshot); err != nil {
		return nil, err
	}
	i := &Isolate{handle: cgo.NewHandle(c.Host)}
	o := C.ex_options{
		heap_bytes: C.uint64_t(c.HeapBytes), buffer_bytes: C.uint64_t(c.BufferBytes), handle: C.uintptr_t(i.handle),
		allow_eval: cbool(c.AllowEval), allow_wasm: cbool(c.AllowWasm), plain: cbool(c.Plain),
	}
	if c.Snapshot != nil {
		o.blob = c.Snapshot.data
	}
	if c.Snapshot == nil || c.Plain { // else what it makes is in the snapshot
		lib := C.CString(c.Library)
		defer C.free(unsafe.Pointer(lib))
		o.library = C.ex_view{p: lib, n: C.size_t(len(c.Library))}
	}
	o.cache = viewBytes(c.Cache)
	var e C.ex_error
	i.p = C.ex_isolate_new(&o, &e)
	if err := takeError(&e); err != nil {
		i.handle.Delete()
		living.remove()
		return nil, fmt.Errorf("cannot make an isolate: %w", err)
	}
	return i, nil
}

// Close disposes of the isolate. Closing twice is harmless.
func (i *Isolate) Close() error {
	if !i.inside.TryLock() {
		return ErrBusy
	}
	defer i.inside.Unlock()
	i.alive.Lock()
	p := i.p
	i.p = nil
	i.alive.Unlock()
	if p != nil {
		C.ex_isolate_free(p)
		i.handle.Delete()
		living.remove()
	}
	return nil
}

// Terminate makes running JavaScript end, now or when it next runs. Some builtins do not notice; nothing but the end
// of the process stops those.
func (i *Isolate) Terminate() {
	i.alive.Lock()
	defer i.alive.Unlock()
	if i.p != nil {
		C.ex_terminate(i.p)
	}
}

// CountBuffers makes the isolate count its buffers, memories of WebAssembly included, when it next can, and end its program
// when they are over the limit. V8 does so by itself only when it collects garbage.
func (i *Isolate) CountBuffers() {
	i.alive.Lock()
	defer i.alive.Unlock()
	if i.p != nil {
		C.ex_count(i.p)
	}
}

// HeapBytes is the heap in use at the last garbage collection, or when Stats was called.
func (i *Isolate) HeapBytes() uint64 {
	i.alive.Lock()
	defer i.alive.Unlock()
	if i.p == nil {
		return 0
	}
	return uint64(C.ex_heap_sample(i.p))
}

// enter takes the isolate for this goroutine.
func (i *Isolate) enter() error {
	if !i.inside.TryLock() {
		return ErrBusy
	}
	if i.p == nil {
		i.inside.Unlock()
		return ErrClosed
	}
	return nil
}

// Limits that hold for the program about to run; all positive. HeapBytes is at most the Config's, BufferBytes replaces
// the Config's.
type Limits struct {
	HeapBytes, BufferBytes int64
	StackBytes             int64 // of JavaScript; what the thread has is enough for no more
	Depth, Nodes           int   // of one encoded or decoded value
	MessageBytes           int64 // of one call's arguments, encoded
}

// DefaultStackBytes is V8's own default.
const DefaultStackBytes = 984 << 10

// Begin sets the limits and hands the configuration (JSON text) to the library.
func (i *Isolate) Begin(config string, l Limits) error {
	if err := i.enter(); err != nil {
		return err
	}
	defer i.inside.Unlock()
	limits := C.ex_limits{
		heap_bytes: C.uint64_t(l.HeapBytes), buffer_bytes: C.uint64_t(l.BufferBytes), stack_bytes: C.uint64_t(l.StackBytes),
		message_bytes: C.uint64_t(l.MessageBytes), depth: C.int(l.Depth), nodes: C.int(l.Nodes),
	}
	e := C.ex_begin(i.p, view(config), &limits)
	return takeError(&e)
}

// Run compiles, links and starts the entry module. With call the default export must be a function and is called with
// the input; else it is the value, or called if it is a function. input is an encoded value, empty for undefined.
func (i *Isolate) Run(name, source string, call bool, input []byte) error {
	if err := i.enter(); err != nil {
		return err
	}
	defer i.inside.Unlock()
	e := C.ex_run(i.p, view(name), view(source), cbool(call), viewBytes(input))
	return takeError(&e)
}

// Compile tells how V8 finds a module's text, without running it.
func (i *Isolate) Compile(name, source string) error {
	if err := i.enter(); err != nil {
		return err
	}
	defer i.inside.Unlock()
	e := C.ex_compile(i.p, view(name), view(source))
	return takeError(&e)
}

// Drain runs microtasks and V8's own tasks until none is left.
func (i *Isolate) Drain() (State, error) {
	if err := i.enter(); err != nil {
		return Stopped, err
	}
	defer i.inside.Unlock()
	return State(C.ex_drain(i.p)), nil
}

// Stirred tells whether the program may have gone on in the last Drain by itself, without a result or a timer of the
// host's: then it may have begun something in the background that has ended since. Only for the goroutine that drains.
func (i *Isolate) Stirred() bool { return C.ex_stirred(i.p) != 0 }

// Value encodes the program's value, at most maxBytes of it, or returns what it failed with. A long text is memory of the
// isolate's own: it is gone after FreeValue and Close.
func (i *Isolate) Value(maxBytes int64) ([]byte, error) {
	const long = 64 << 10
	if err := i.enter(); err != nil {
		return nil, err
	}
	defer i.inside.Unlock()
	r := C.ex_value(i.p, C.uint64_t(maxBytes))
	if err := takeError(&r.error); err != nil {
		return nil, err
	}
	if r.value.n < long {
		return takeBytes(r.value), nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(r.value.p)), int(r.value.n)), nil
}

// FreeValue frees what Value gave, where the isolate lives on.
func (i *Isolate) FreeValue() {
	if i.enter() == nil {
		defer i.inside.Unlock()
		C.ex_value_free(i.p)
	}
}

// Stalled tells where a program waits at the top level of a module for something that cannot happen; nil if it does
// not.
func (i *Isolate) Stalled() *Error {
	_, err := i.result(func() C.ex_result { return C.ex_stalled(i.p) })
	at, _ := err.(*Error)
	return at
}

// PartCache gives the code cache of a part of the library, with what this isolate has used of it; nil if nothing.
func (i *Isolate) PartCache(name string) ([]byte, error) {
	return i.result(func() C.ex_result { return C.ex_part_cache(i.p, view(name)) })
}

// LibraryCache gives the code cache of a Plain isolate's Library, with what has been called of it.
func (i *Isolate) LibraryCache() ([]byte, error) { return i.PartCache(C.EX_LIBRARY_NAME) }

// Call calls a Plain isolate's function with two strings and returns its value as a string.
func (i *Isolate) Call(a, b string) (string, error) {
	v, err := i.result(func() C.ex_result { return C.ex_call(i.p, view(a), view(b)) })
	return string(v), err
}

// RoundTrip decodes an encoded value and encodes what came of it; with script, it evaluates a classic script instead of
// decoding. It is there to prove the codec, and to warm it.
func (i *Isolate) RoundTrip(text string, script bool, maxBytes int64) ([]byte, error) {
	return i.result(func() C.ex_result { return C.ex_roundtrip(i.p, view(text), cbool(script), C.uint64_t(maxBytes)) })
}

func (i *Isolate) result(f func() C.ex_result) ([]byte, error) {
	if err := i.enter(); err != nil {
		return nil, err
	}
	defer i.inside.Unlock()
	r := f()
	defer C.ex_buf_free(r.value)
	if err := takeError(&r.error); err != nil {
		return nil, err
	}
	return takeBytes(r.value), nil
}

// Resolve settles a tool call: with an encoded value, or else with the JSON text of a protocol.ThrownError. An unknown
// id is ignored.
func (i *Isolate) Resolve(id uint64, ok bool, text []byte) error {
	if err := i.enter(); err != nil {
		return err
	}
	defer i.inside.Unlock()
	e := C.ex_resolve(i.p, C.uint64_t(id), cbool(ok), viewBytes(text))
	return takeError(&e)
}

// Hush has nothing said of a tool call that fails while nobody waits for it.
func (i *Isolate) Hush(id uint64) {
	if i.enter() != nil {
		return
	}
	defer i.inside.Unlock()
	C.ex_hush(i.p, C.uint64_t(id))
}

// Fire runs a timer's callback for a task, 0 for none; last says that it will not fire again.
func (i *Isolate) Fire(id uint32, last bool, task uint64) error {
	if err := i.enter(); err != nil {
		return err
	}
	defer i.inside.Unlock()
	C.ex_fire(i.p, C.uint32_t(id), cbool(last), C.uint64_t(task))
	return nil
}

// Stats of an isolate.
type Stats struct {
	HeapBytes, PeakHeapBytes, HeapLimitBytes, BufferBytes uint64
	MemoryHit, BufferDenied                               bool
}

// Stats reads V8's heap statistics.
func (i *Isolate) Stats() (Stats, error) {
	if err := i.enter(); err != nil {
		return Stats{}, err
	}
	defer i.inside.Unlock()
	var s C.ex_stats
	C.ex_stats_read(i.p, &s)
	return Stats{uint64(s.heap_used), uint64(s.heap_peak), uint64(s.heap_limit), uint64(s.buffers_used), s.memory_hit != 0, s.buffer_denied != 0}, nil
}

func cbool(b bool) C.int {
	if b {
		return 1
	}
	return 0
}
