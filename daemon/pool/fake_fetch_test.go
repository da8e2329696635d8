package pool

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// fetched is what a fake has of the network in one execution.
type fetched struct {
	fetches uint64
	text    string // everything read
}

// fetchStep plays a line about the network:
//
//	fetch METHOD ADDRESS [BODY]  and waits for the head
//	fire-fetch N ADDRESS         N of them, without waiting
//	fetchraw FETCH REQUEST       any number and text, then waits
//	read N                       N pieces of the newest body, or to its end with 0
//	readraw FETCH                asks for a piece, then waits
//	give-up FETCH
//	text                         ends with what was read
func (f *fake) fetchStep(m worker.Execute, verb, arg string) bool {
	first, rest, _ := strings.Cut(arg, " ")
	number, _ := strconv.ParseUint(first, 10, 64)
	switch verb {
	case "fetch":
		address, body, hasBody := strings.Cut(rest, " ")
		r := protocol.FetchRequest{Method: first, URL: address}
		if hasBody {
			r.Body = []byte(body)
		}
		f.fetches++
		_, over := f.ask(m, worker.Fetch{ID: m.ID, Call: f.nextCall(), Fetch: f.fetches, Request: protocol.AppendFetchRequest(nil, &r)})
		return over
	case "fire-fetch":
		for range number {
			f.fetches++
			request := protocol.AppendFetchRequest(nil, &protocol.FetchRequest{Method: "GET", URL: rest})
			f.send(worker.Fetch{ID: m.ID, Call: f.nextCall(), Fetch: f.fetches, Request: request})
		}
	case "fetchraw":
		_, over := f.ask(m, worker.Fetch{ID: m.ID, Call: f.nextCall(), Fetch: number, Request: []byte(rest)})
		return over
	case "read":
		for i := uint64(0); number == 0 || i < number; i++ {
			piece, over := f.ask(m, worker.FetchRead{ID: m.ID, Call: f.nextCall(), Fetch: f.fetches})
			if over || string(piece) == "null" {
				return over
			}
			var b struct {
				Bytes string `json:"@bytes"`
			}
			_ = json.Unmarshal(piece, &b)
			text, _ := base64.StdEncoding.DecodeString(b.Bytes)
			f.text += string(text)
		}
	case "readraw":
		_, over := f.ask(m, worker.FetchRead{ID: m.ID, Call: f.nextCall(), Fetch: number})
		return over
	case "give-up":
		f.send(worker.FetchCancel{ID: m.ID, Fetch: number})
	case "text":
		text, _ := json.Marshal(f.text)
		f.result(m, string(text))
		return true
	}
	return false
}

func (f *fake) nextCall() uint64 {
	f.calls++
	return f.calls
}

// ask sends a call and waits for its answer; one that failed is the end of the program.
func (f *fake) ask(m worker.Execute, call worker.Message) (value []byte, over bool) {
	f.send(call)
	for msg := range f.inbox {
		switch msg := msg.(type) {
		case worker.ToolResult:
			if msg.ID != m.ID || msg.Call != f.calls {
				continue
			}
			if !msg.OK {
				f.fault(m, fmt.Sprintf(`{"type":"exception","message":"fetch","cause":%s}`, msg.Value))
			}
			return msg.Value, !msg.OK
		case worker.Cancel:
			text, _ := json.Marshal(protocol.Errorf(protocol.Cancelled, "%s", msg.Reason))
			f.fault(m, string(text))
			return nil, true
		}
	}
	f.leave(0)
	return nil, true
}
