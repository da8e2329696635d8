package pool

import (
	"fmt"
	"syscall"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// verdict is why an execution ended without a result of its own.
type verdict struct {
	typ     protocol.Type
	reason  string // with worker_crashed
	message string
}

func (v *verdict) err() *protocol.Error {
	return &protocol.Error{Type: v.typ, Reason: v.reason, Message: v.message}
}

// maxDetail bounds what a last word may add to a message.
const maxDetail = 1 << 10

// violation says how a worker broke the contract. It ends the worker. Where it let its program pass a limit, the type is
// that of the limit: the ending is the same whichever layer acted.
type violation struct {
	what string
	typ  protocol.Type
}

func (v *violation) Error() string { return "worker broke the contract: " + v.what }

func overLimit(t protocol.Type, format string, args ...any) error {
	return &violation{what: fmt.Sprintf(format, args...), typ: t}
}

func violationf(format string, args ...any) error {
	return &violation{what: fmt.Sprintf(format, args...)}
}

// verdict is what a violation does to the program.
func (v *violation) verdict(l protocol.Limits) *verdict {
	if v.typ != "" {
		return stopped(v.typ, l)
	}
	return crashed("protocol", v.Error())
}

// crashed is the verdict on a worker that died, or had to.
func crashed(reason, message string) *verdict {
	return &verdict{typ: protocol.WorkerCrashed, reason: reason, message: message}
}

func unresponsive(message string) *verdict { return crashed("unresponsive", message) }

// stopped is the verdict of a limit. Its text is the same whichever layer acted.
func stopped(t protocol.Type, l protocol.Limits) *verdict {
	v := &verdict{typ: t}
	switch t {
	case protocol.CPUTimeout:
		v.message = fmt.Sprintf("the program used more than its %s of CPU time", millis(l.CPUMs))
	case protocol.WallTimeout:
		v.message = fmt.Sprintf("the program took longer than its %s, not counting waits for tools", millis(l.WallMs))
	case protocol.TotalTimeout:
		v.message = fmt.Sprintf("the program took longer than its %s in all", millis(l.TotalMs))
	case protocol.ToolLimit:
		v.message = fmt.Sprintf("the program made more than its %d tool calls (%d at once), or its %d fetches", l.ToolCalls, l.ToolCallsInFlight, l.Fetches)
	case protocol.ResultTooLarge:
		v.message = fmt.Sprintf("result is larger than %d bytes", l.ResultBytes)
	case protocol.ResultUnserializable:
		v.message = fmt.Sprintf("result is nested deeper than %d levels, or has more than %d parts", l.ValueDepth, l.ValueParts)
	case protocol.MemoryLimit:
		v.message = fmt.Sprintf("the program needed more memory than its %d MiB of heap and %d MiB of buffers", l.HeapMiB, l.BufferMiB)
	}
	return v
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// lastWords are the types that a worker may give as the cause of its end.
var lastWords = map[protocol.Type]bool{
	protocol.CPUTimeout: true, protocol.WallTimeout: true, protocol.TotalTimeout: true, protocol.MemoryLimit: true,
	protocol.Cancelled: true, protocol.ToolLimit: true,
}

// exitTypes are the causes that exit statuses say.
var exitTypes = map[int]protocol.Type{
	worker.ExitHeapOOM: protocol.MemoryLimit, worker.ExitProcessOOM: protocol.MemoryLimit,
	worker.ExitCPU: protocol.CPUTimeout, worker.ExitWall: protocol.WallTimeout, worker.ExitTotal: protocol.TotalTimeout,
	worker.ExitCancelled: protocol.Cancelled,
}

// autopsy is the verdict on a worker that ended by itself during an execution: by its last word, else by how the
// process ended. Cancelled is believed only where the execution was cancelled; cancelled is then its verdict.
func autopsy(word *worker.LastWord, exit ExitState, l protocol.Limits, cancelled *verdict) *verdict {
	if word != nil {
		if v := believed(protocol.Type(word.Type), l, cancelled); v != nil {
			// What the engine says of memory is a name in its source; it is in the obituary.
			if d := Clip(word.Detail, maxDetail); d != "" && v != cancelled && v.typ != protocol.MemoryLimit {
				v.message = d
			}
			return v
		}
	}
	if v := believed(exitTypes[exit.Code], l, cancelled); v != nil && exit.Signal == 0 {
		return v
	}
	if exit.Cause == "oom-kill" {
		return stopped(protocol.MemoryLimit, l)
	}
	v := crashed(exit.String(), "the worker process ended: "+exit.String())
	if exit.Signal == 0 && exit.Code == worker.ExitFatal || exit.Signal == syscall.SIGABRT {
		v.message = "the engine met a fatal fault"
	}
	if word != nil && word.Type == string(protocol.WorkerCrashed) && word.Detail != "" {
		v.message = Clip(word.Detail, maxDetail)
	}
	return v
}

// believed is the verdict of type t where a worker may claim it for itself, else nil.
func believed(t protocol.Type, l protocol.Limits, cancelled *verdict) *verdict {
	switch {
	case !lastWords[t]:
		return nil
	case t == protocol.Cancelled:
		return cancelled
	}
	return stopped(t, l)
}

// Clip cuts s at n bytes, between characters.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
