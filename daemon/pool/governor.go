package pool

import (
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// governor holds one execution to its limits, as far as they show outside of its worker. Each moment of an execution is a
// method; what it costs is accounted for there and nowhere else. An honest worker never gets as far as a violation: it has
// the same limits, and its own come first. Any goroutine may call, and no method blocks.
type governor interface {
	// admit refuses a request before it waits for a worker.
	admit(*executor.Request) error
	// share has an invocation count on what is one for its isolate. It comes before enter.
	share(*guest)
	// enter starts the clocks: the execution is with a worker.
	enter(now time.Time)
	// hostCall counts what the program asks of its host; with the first call under way the guest leaves, so its clock
	// stands. Refused is thrown in the program in place of an answer. Unless there is a violation, answered follows.
	hostCall(now time.Time, c *hostCall) (refused *protocol.ThrownError, violation error)
	// answered gives back what a call holds; with the last the guest enters again. Ok is for the list of calls.
	answered(now time.Time, c *hostCall, ok bool)
	// body counts n bytes of the body of a response; false when they are too many.
	body(n int) bool
	// output takes a console line.
	output(worker.Log) (violation error)
	// spent is what was used so far, without logs and list.
	spent(now time.Time) account
	// due is when the guest's clock or that of the execution runs out if nothing changes, and the ending that it is.
	due() (time.Time, protocol.Type)
	// end reads what the worker says that the execution came to.
	end(r worker.Result, cancelled bool) (value protocol.Value, fault *protocol.Error, violation error)
	// account closes the books and says what was used. What comes later changes nothing in it.
	account(now time.Time) account
}

// hostCall is one thing that a program asks of its host.
type hostCall struct {
	kind   callKind
	number uint64
	asked  time.Time
	size   int64 // of the arguments, or of the request
	body   int64 // of the request

	// Of a tool call.
	provider string
	path     []string

	record *protocol.Call // in the list of calls, of a tool call; the governor's own
}

type callKind uint8

const (
	toolKind  callKind = iota
	fetchKind          // an exchange, up to the head of its response
	readKind           // the next bytes of its body
)

// account is what an execution used, for its outcome.
type account struct {
	guest          time.Duration // its own time
	calls, fetches int64
	tools          answers // of calls
	exchanges      answers // of fetches
	list           []protocol.Call
	logs           []protocol.Log
	reached        []string // limits that it ran into and that did not end it
}

// answers count what became of calls.
type answers struct{ ok, failed, pending int64 }

// addTo adds to a total.
func (a answers) addTo(total map[protocol.CallStatus]uint64) {
	total[protocol.CallOK] += uint64(a.ok)
	total[protocol.CallError] += uint64(a.failed)
	total[protocol.CallPending] += uint64(a.pending)
}

// answer counts one.
func (a *answers) answer(ok bool) {
	if ok {
		a.ok++
	} else {
		a.failed++
	}
}

// of completes the count: of so many calls the rest is pending.
func (a answers) of(calls int64) answers {
	a.pending = calls - a.ok - a.failed
	return a
}
