package sandbox

import (
	"bytes"
	"math"
	"strings"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
	"github.com/executord/executord/sandbox/v8"
)

// The execution is its isolate's host.
var _ v8.Host = (*execution)(nil)

// ToolCall sends a call to the parent and remembers that it is under way. No provider has an empty name: the library's own
// calls have it.
func (e *execution) ToolCall(id uint64, provider string, path []string, args []byte) bool {
	e.attend()
	if provider == "" {
		return e.network(id, path, args)
	}
	if e.calls >= uint64(e.limits.ToolCalls) && !without(e.request, "calls") {
		e.dog.halt(protocol.ToolLimit, "")
		return false
	}
	e.calls++
	e.pending[id] = pending{task: e.task, name: provider + "." + strings.Join(path, ".")}
	call := worker.ToolCall{ID: e.id, Call: id, Provider: provider, Path: path, Args: args}
	if e.inFlight >= e.limits.CallsInFlight && !without(e.request, "turns") {
		e.reach("toolCallsInFlight")
		call.Args = bytes.Clone(args)
		e.turns = append(e.turns, call)
		return true
	}
	e.inFlight++
	return e.gather(call) == nil
}

// nextTurn follows the answer to a tool call: one that waits may be made.
func (e *execution) nextTurn(t *task) {
	if len(t.turns) == 0 {
		t.inFlight--
		return
	}
	call := t.turns[0]
	t.turns[0] = worker.ToolCall{}
	t.turns = t.turns[1:]
	_ = e.gather(call)
}

// reach notes that the program ran into a limit that does not end it.
func (e *execution) reach(limit string) {
	if e.reached == nil {
		e.reached = map[string]bool{}
	}
	e.reached[limit] = true
}

// Log prints a console line.
func (e *execution) Log(level, text string) {
	e.attend()
	e.print(level, text)
}

// print prints a line of the current task.
func (e *execution) print(level, text string) {
	_, _, total := e.clocks.read()
	e.console.print(level, text, total)
	onLog(e, text)
}

// maxTimer is the longest delay of the HTML standard's timers, whose delay is a signed 32-bit number.
const maxTimer = math.MaxInt32 * time.Millisecond

// TimerStart makes a timer, or returns 0 when too many are pending.
func (e *execution) TimerStart(ms float64, repeat bool) uint32 {
	e.attend()
	if int64(len(e.timers.queue)) >= e.request.Limits.Timers && !without(e.request, "timers") {
		e.reach("timers")
		return 0
	}
	d := maxTimer
	if ms < float64(math.MaxInt32) {
		d = time.Duration(max(ms, 0) * float64(time.Millisecond))
	}
	return e.timers.start(time.Now(), d, repeat, e.id)
}

// TimerStop forgets a timer.
func (e *execution) TimerStop(id uint32) { e.timers.stop(id) }

// ResolveModule finds a module of the request. It may ask the analyzer, whose isolate a stop then reaches in place of
// the program's.
func (e *execution) ResolveModule(specifier, referrer, typ string) (v8.ModuleText, error) {
	m, err := e.modules.resolve(specifier, referrer, typ)
	if e.stopped() != nil {
		e.iso.Terminate()
	}
	return m, err
}

// Hint gives the text for a name that the program expected among the globals.
func (e *execution) Hint(name string) string { return globalHints[name] }

// MapPosition translates a place in the entry module, or in another that was TypeScript.
func (e *execution) MapPosition(file string, line, column int) (int, int) {
	if e == nil || e.program == nil {
		return line, column
	}
	if t, ok := e.erased[file]; ok {
		return t.locate(line, column)
	}
	if file != e.request.Name {
		return line, column
	}
	return e.program.Map(line, column)
}
