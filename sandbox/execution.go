package sandbox

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
	"github.com/executord/executord/sandbox/entry"
	"github.com/executord/executord/sandbox/v8"
)

// pollBackground is how often the loop looks for tasks of V8 while it does something in the background that will not
// wake the loop, and maxBackground how long it believes that something still comes of it.
const (
	pollBackground = 2 * time.Millisecond
	maxBackground  = 5 * time.Second
)

// execution is one program's run, and what is called of it afterwards where it is retained. Its fields belong to the loop's
// goroutine but for the inbox and the tasks.
type execution struct {
	*task // that the running code belongs to; the program's own until it has settled
	services
	request worker.Execute
	iso     *v8.Isolate
	send    func(worker.Message) error
	gather  func(worker.Message) error // send for what comes many at a time: it leaves before the loop waits, if not at once
	flush   func()                     // waits until what was sent has left
	program *entry.Program
	modules *graph
	erased  map[string]*erased // what was TypeScript, by file
	timers  *timers
	pending map[uint64]pending // calls of the host under way, or that wait for their turn

	exchanges map[uint64]*task // fetches, by the task that has them
	fault     error            // of the engine's or the library's, not of the program

	adding   sync.Mutex
	tasks    atomic.Pointer[[]*task] // under way; see active
	retained atomic.Bool             // invocations may come
	over     bool                    // all handles were released
	broken   bool                    // an invocation was stopped, and the isolate with it

	inbox  inbox
	listen func(until time.Time, heard func() bool) // waits for the parent; see lookout
}

// pending is a call of the host whose result has not come.
type pending struct {
	task  *task
	name  string // to tell the program's author; empty where it does not matter that the program did not wait
	fetch uint64 // number of the exchange, 0 for a tool call
}

// inbox holds what was heard, by the loop or in its place.
type inbox struct {
	mu      sync.Mutex
	results []worker.ToolResult
	asks    []ask
}

// ask is what the parent wants of a retained program: a call of a handle, or that some handles are released, or all of them.
type ask struct {
	invocation // without a task where it is none
	released   []uint64
}

func (b *inbox) ask(a ask) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asks = append(b.asks, a)
}

func (b *inbox) takeAsks() (list []ask) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list, b.asks = b.asks, nil
	return list
}

func (b *inbox) asked() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.asks) > 0
}

func (b *inbox) put(r worker.ToolResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.results = append(b.results, r)
}

func (b *inbox) take() []worker.ToolResult {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.results
	b.results = nil
	return r
}

// empty tells whether nothing has come that a loop acts on.
func (b *inbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.results)+len(b.asks) == 0
}

// run plays the program to its end and returns its result, complete but for the statistics.
func (e *execution) run(analyze entry.Analyze) worker.Result {
	value, err := e.play(analyze)
	if reason, detail := e.dog.why(); reason != "" {
		err = stopError(e.limits, reason, detail)
	}
	if err != nil {
		if err.Type == protocol.Internal {
			e.fault = err
		}
		return worker.Result{ID: e.request.ID, Error: marshalError(err)}
	}
	r := worker.Result{ID: e.request.ID, Value: value}
	if e.request.Retain != "" {
		r.Handles = e.iso.Handles()
		r.Retained = r.Handles > 0
	}
	return r
}

func (e *execution) play(analyze entry.Analyze) ([]byte, *protocol.Error) {
	var broken error
	e.useAnalyzer(analyze)
	read := entry.Plan
	if protocol.Language(e.request.Language) == protocol.TypeScript {
		read = entry.PlanTypeScript
	}
	program, err := read(func(code, form string) (plan string, err error) {
		plan, broken = analyze(code, form)
		return plan, broken
	}, e.request.Code, protocol.Form(e.request.Form))
	if broken != nil {
		return nil, e.outcome(broken)
	}
	if err != nil {
		return nil, e.rejected(err)
	}
	e.program = program
	source, err := e.javascript()
	if err != nil {
		return nil, e.outcome(err)
	}
	if err := e.begin(); err != nil {
		return nil, e.outcome(err)
	}
	if err := e.iso.Run(e.request.Name, source, program.Call(), e.request.Input); err != nil {
		return nil, e.outcome(err)
	}
	stop := e.loop(e.iso.Drain)
	e.nameLateCalls()
	if stop != nil {
		return nil, stop
	}
	value, err := e.iso.Value(resultBytes(e.request, e.limits))
	if err != nil {
		return nil, e.outcome(err)
	}
	return value, nil
}

func (e *execution) begin() error {
	l := effective(e.request, e.limits)
	if e.request.Retain != "" {
		e.iso.Retain(e.request.Retain)
	}
	return e.iso.Begin(e.config(), v8.Limits{
		HeapBytes: l.HeapBytes, BufferBytes: l.BufferBytes, StackBytes: l.StackBytes, MessageBytes: l.MessageBytes,
		Depth: int(l.ValueDepth), Nodes: int(l.ValueParts),
	})
}

// resultBytes bounds a value: a message has room for no more.
func resultBytes(request worker.Execute, l worker.Limits) int64 {
	const around = 1 << 20 // of an error, and of the names of limits
	return min(effective(request, l).ResultBytes, worker.DefaultFrameBytes-around)
}

// config is what the library's begin takes.
func (e *execution) config() string {
	type provider struct {
		Name  string     `json:"name"`
		All   bool       `json:"all,omitempty"`
		Paths [][]string `json:"paths"` // never null
	}
	providers := make([]provider, len(e.request.Providers))
	for i, p := range e.request.Providers {
		providers[i] = provider{Name: p.Name, All: p.All, Paths: append([][]string{}, p.Paths...)}
	}
	text, _ := json.Marshal(map[string]any{"providers": providers, "network": e.request.Network, "base": baseURL(e)})
	return string(text)
}

// loop turns until nothing is pending any more by the word of drain, or it was stopped.
func (e *execution) loop(drain func() (v8.State, error)) *protocol.Error {
	var idle time.Time // since when only background work is awaited
	var seen uint64    // how much V8 had begun in the background when the last turn came after all of it
	for {
		if e.deliver() {
			idle = time.Time{}
		}
		state, err := drain()
		if err != nil {
			return protocol.AsError(err)
		}
		if state != v8.Pending {
			return nil
		}
		if e.iso.Stirred() {
			idle = time.Time{}
		}
		if e.fire() {
			idle = time.Time{}
			continue
		}
		due, timed := e.timers.next()
		if len(e.pending) > 0 || timed {
			idle = time.Time{}
			begun, busy := v8.Background()
			if !busy && begun != seen { // what ended meanwhile may have posted a task
				seen = begun
				continue
			}
			if !e.wait(soon(due, timed, busy)) {
				return nil
			}
			continue
		}
		if idle.IsZero() {
			idle = time.Now()
		}
		if _, busy := v8.Background(); !busy || time.Since(idle) > maxBackground {
			if state, _ := drain(); state != v8.Pending || e.iso.Stirred() || len(e.pending) > 0 {
				continue
			}
			if _, timed := e.timers.next(); timed {
				continue
			}
			if !e.retained.Load() {
				return e.deadlock()
			}
			// Another invocation may settle it, but nothing that the host has been asked for: the clocks run on.
			e.listen(time.Time{}, e.heard)
			if e.stopped() != nil {
				return nil
			}
			idle = time.Time{}
			continue
		}
		if !e.wait(time.Now().Add(pollBackground), true) {
			return nil
		}
	}
}

// soon is when to look again: when the next timer is due, or earlier while V8 does something in the background.
func soon(due time.Time, timed, busy bool) (time.Time, bool) {
	if poll := time.Now().Add(pollBackground); busy && (!timed || poll.Before(due)) {
		return poll, true
	}
	return due, timed
}

// deliver settles the promises whose results came in; the batch is followed by one turn.
func (e *execution) deliver() bool {
	results := e.inbox.take()
	for _, r := range results {
		p, ok := e.pending[r.Call]
		if !ok {
			continue
		}
		delete(e.pending, r.Call)
		if p.fetch == 0 {
			e.nextTurn(p.task)
		}
		if err := e.iso.Resolve(r.Call, r.OK, r.Value); err != nil {
			return true // stopped: the next turn says so
		}
	}
	return len(results) > 0
}

// fire runs one due timer; each is a task of its own, followed by a turn.
func (e *execution) fire() bool {
	x, last, ok := e.timers.take(time.Now())
	if !ok {
		return false
	}
	var owner uint64
	if e.retained.Load() {
		owner = x.task
	}
	e.iso.Fire(x.id, last, owner)
	return true
}

// wait sleeps until something happens; false means that the execution was stopped.
func (e *execution) wait(due time.Time, timed bool) bool {
	if !timed {
		due = time.Time{}
		for _, t := range e.active() {
			t.clocks.pause()
			defer t.clocks.resume()
		}
	}
	e.listen(due, e.heard)
	return e.stopped() == nil
}

// heard tells whether there is something for the loop to act on.
func (e *execution) heard() bool {
	return e.stopped() != nil || !e.inbox.empty()
}
