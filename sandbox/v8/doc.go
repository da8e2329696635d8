// Package v8 is a thin binding over V8's C++ API: what the sandbox needs and nothing else. It initializes the engine,
// makes and restores startup snapshots, and runs one program's module graph in an isolate with bounded memory, driven
// from outside by turns of an event loop.
//
// It is used by package sandbox inside a worker process. It holds no policy: clocks, limits on calls and logs, and what
// an ending is called are decided there.
//
// Concurrency: an Isolate is used by one goroutine at a time, and a second one is refused with ErrBusy rather than
// queued; Terminate and HeapBytes alone may be called from anywhere, at any time, even after Close. The callbacks of
// Host run on the goroutine that is inside the isolate. Nothing here has a finalizer: what is opened is closed by its
// owner.
//
// V8 itself comes as static libraries from github.com/tommie/v8go/deps; the C++ headers are found through the link
// `include`, which `make setup` lays.
package v8
