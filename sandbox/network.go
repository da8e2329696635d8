package sandbox

import (
	"errors"
	"strconv"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// The library reaches the network by calls without a provider, which are answered as those of tools are:
//
//	fetch.N(request) → head of the response; N counts up from 1
//	read.N() → the next bytes of the body, null at its end
//
// and by the operation "fetch.cancel"(N), which gives up what is under way of it.

// network makes one of the library's calls.
func (e *execution) network(id uint64, path []string, args []byte) bool {
	if len(path) != 2 || e.request.Network == string(protocol.NetworkNone) {
		return false
	}
	number, err := strconv.ParseUint(path[1], 10, 64)
	switch {
	case err != nil:
		return false
	case path[0] == "read":
		owner := e.exchanges[number]
		e.pending[id] = pending{task: e.task, fetch: number}
		if owner == nil { // it ended with the invocation that began it
			e.inbox.put(worker.ToolResult{ID: e.id, Call: id, Value: []byte(exchangeEnded)})
			return true
		}
		return e.send(worker.FetchRead{ID: owner.id, Call: id, Fetch: number}) == nil
	case path[0] != "fetch" || len(args) < len("[]"):
		return false
	case e.fetches >= uint64(e.limits.Fetches):
		e.dog.halt(protocol.ToolLimit, tooManyFetches(e.limits))
		return false
	}
	e.fetches++
	e.pending[id] = pending{task: e.task, name: "fetch", fetch: number}
	if e.exchanges == nil {
		e.exchanges = map[uint64]*task{}
	}
	e.exchanges[number] = e.task
	// The one argument without the brackets of the array.
	return e.send(worker.Fetch{ID: e.id, Call: id, Fetch: number, Request: args[1 : len(args)-1]}) == nil
}

// exchangeEnded is what requests, and reads of their bodies, fail with in Fetch's own form.
const exchangeEnded = `{"name":"TypeError","message":"the exchange has ended with the invocation that began it"}`

// Op performs an operation of the library.
func (e *execution) Op(args []any) (any, error) {
	if len(args) == 2 && args[0] == "fetch.cancel" {
		number, ok := args[1].(float64)
		if !ok || number < 1 || number >= 1<<53 {
			return nil, errors.New("TypeError: wrong arguments of a fetch operation")
		}
		e.cancelFetch(uint64(number))
		return nil, nil
	}
	return e.services.Op(args)
}

// cancelFetch gives up an exchange. What waits for it is told so here, since the parent does not answer any more.
func (e *execution) cancelFetch(number uint64) {
	if e.request.Network == string(protocol.NetworkNone) {
		return
	}
	owner := e.exchanges[number]
	if owner == nil {
		return
	}
	_ = e.send(worker.FetchCancel{ID: owner.id, Fetch: number})
	for call, p := range e.pending {
		if p.fetch == number {
			e.pending[call] = pending{task: p.task, fetch: number} // nobody waits for it in vain
			e.inbox.put(worker.ToolResult{ID: p.task.id, Call: call, Value: []byte(`{"message":"the exchange was given up"}`)})
		}
	}
}
