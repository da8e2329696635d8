package pool

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// retains is what a fake has retained: each invocation plays the lines in its first argument, on a goroutine of its own.
type retains struct {
	newest   atomic.Uint64 // handle
	released atomic.Uint64 // handles that it was told of
	mu       sync.Mutex
	inboxes  map[uint64]chan worker.Message
}

// retain ends an execution with "N VALUE", so many handles in it, and answers invocations until it is let go.
func (f *fake) retain(m worker.Execute, verb, arg string) bool {
	number, value, _ := strings.Cut(arg, " ")
	n, _ := strconv.ParseUint(number, 10, 64)
	f.newest.Store(n)
	f.mu.Lock()
	f.inboxes = map[uint64]chan worker.Message{}
	f.mu.Unlock()
	defer f.shut()
	r := worker.Result{ID: m.ID, Retained: true, Handles: n, Value: []byte(value), CPU: time.Millisecond}
	if verb == "retain-error" {
		r.Value, r.Error = nil, []byte(value)
	}
	f.send(r)
	f.id.Store(0)
	over := make(chan struct{})
	var once sync.Once
	for {
		select {
		case <-over:
			return true
		case msg, ok := <-f.inbox:
			if !ok {
				f.leave(0)
			}
			switch msg := msg.(type) {
			case worker.Invoke:
				inbox := f.open(msg.ID)
				go f.play(msg, inbox, func() { once.Do(func() { close(over) }) })
			case worker.Release:
				if f.released.Add(uint64(len(msg.Handles))); len(msg.Handles) == 0 {
					if f.mode == "late" {
						f.send(worker.Log{ID: m.ID, Level: "log", Text: "late"})
					}
					return true
				}
			case worker.ToolResult:
				f.route(msg.ID, msg)
			case worker.Cancel:
				f.route(msg.ID, msg)
			}
		}
	}
}

func (f *fake) open(id uint64) chan worker.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inboxes[id] = make(chan worker.Message, 100)
	return f.inboxes[id]
}

// shut ends the invocations that still play.
func (f *fake) shut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, inbox := range f.inboxes {
		close(inbox)
	}
	f.inboxes = nil
}

func (f *fake) route(id uint64, m worker.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if inbox := f.inboxes[id]; inbox != nil {
		inbox <- m
	}
}

// play does the lines of an invocation. An isolate that is over is reported to quit.
func (f *fake) play(m worker.Invoke, inbox chan worker.Message, quit func()) {
	var args []json.RawMessage
	var lines string
	_ = json.Unmarshal(m.Args, &args)
	if len(args) > 0 {
		_ = json.Unmarshal(args[0], &lines)
	}
	answer := func(value string) {
		f.send(worker.Result{ID: m.ID, Retained: true, Handles: f.newest.Load(), Value: []byte(value), CPU: time.Millisecond})
	}
	stop := func(text []byte) {
		f.send(worker.Result{ID: m.ID, Handles: f.newest.Load(), Error: text})
		quit()
	}
	for line := range strings.SplitSeq(lines, "\n") {
		verb, arg, _ := strings.Cut(line, " ")
		number, _ := strconv.ParseUint(arg, 10, 64)
		switch verb {
		case "log":
			f.send(worker.Log{ID: m.ID, Level: "log", Text: arg})
		case "return":
			answer(arg)
			return
		case "more": // handles, in its value
			f.newest.Add(number)
			answer("[]")
			return
		case "fewer":
			f.newest.Add(-number)
			answer("[]")
			return
		case "throw":
			f.send(worker.Result{ID: m.ID, Retained: true, Handles: f.newest.Load(), Error: []byte(arg)})
			return
		case "stop": // an error after which the isolate is over
			stop([]byte(arg))
			return
		case "handle":
			answer(strconv.Quote(m.Method + strconv.FormatUint(m.Handle, 10)))
			return
		case "limits":
			text, _ := json.Marshal(m.Limits)
			answer(string(text))
			return
		case "released":
			answer(strconv.FormatUint(f.released.Load(), 10))
			return
		case "call":
			f.send(worker.ToolCall{ID: m.ID, Call: 1, Provider: "tools", Path: []string{arg}, Args: []byte("[]")})
			switch msg := (<-inbox).(type) {
			case worker.ToolResult:
				answer(string(msg.Value))
			case worker.Cancel:
				text, _ := json.Marshal(protocol.Errorf(protocol.Cancelled, "%s", msg.Reason))
				stop(text)
			}
			return
		case "wait": // until cancelled
			c, is := (<-inbox).(worker.Cancel)
			if !is {
				return
			}
			text, _ := json.Marshal(protocol.Errorf(protocol.Cancelled, "%s", c.Reason))
			stop(text)
			return
		case "deaf": // to a cancellation
			return
		case "resultfor":
			f.send(worker.Result{ID: m.ID + number, Retained: true, Handles: f.newest.Load(), Value: []byte("1")})
			return
		case "twice":
			answer("1")
			answer("2")
			return
		case "ready":
			f.send(worker.Ready{})
			return
		case "word":
			f.send(worker.LastWord{ID: m.ID, Type: arg})
			f.leave(worker.ExitCPU)
		case "exit":
			f.leave(int(number))
		}
	}
}
