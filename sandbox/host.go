package sandbox

import (
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
	if provider == "" {
		return e.network(id, path, args)
	}
	if e.calls >= uint64(e.request.Limits.ToolCalls) {
		e.dog.halt(protocol.ToolLimit, "")
		return false
	}
	e.calls++
	e.pending[id] = pending{name: provider + "." + strings.Join(path, ".")}
	return e.send(worker.ToolCall{ID: e.request.ID, Call: id, Provider: provider, Path: path, Args: args}) == nil
}

// Log sends a console line while the bounds on logs allow it, and counts what they do not.
func (e *execution) Log(level, text string) {
	n := int64(len(text))
	if e.logLines >= e.request.Limits.LogLines || e.logBytes+n > e.request.Limits.LogBytes {
		e.droppedLines++
		e.droppedBytes += uint64(n)
		return
	}
	e.logLines++
	e.logBytes += n
	_, _, total := e.clocks.read()
	_ = e.send(worker.Log{ID: e.request.ID, Level: level, Time: total, Text: text})
	onLog(e, text)
}

// maxTimer is the longest delay of the HTML standard's timers, whose delay is a signed 32-bit number.
const maxTimer = math.MaxInt32 * time.Millisecond

// TimerStart makes a timer.
func (e *execution) TimerStart(ms float64, repeat bool) uint32 {
	d := maxTimer
	if ms < float64(math.MaxInt32) {
		d = time.Duration(max(ms, 0) * float64(time.Millisecond))
	}
	return e.timers.start(time.Now(), d, repeat)
}

// TimerStop forgets a timer.
func (e *execution) TimerStop(id uint32) { e.timers.stop(id) }

// ResolveModule finds a module of the request. It may ask the analyzer, whose isolate a stop then reaches in place of
// the program's.
func (e *execution) ResolveModule(specifier, referrer, typ string) (v8.ModuleText, error) {
	m, err := e.modules.resolve(specifier, referrer, typ)
	if reason, _ := e.dog.why(); reason != "" {
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
