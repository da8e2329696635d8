package server

import (
	"cmp"
	"context"
	"encoding/json"
	"hash/maphash"
	"runtime/debug"
	"sync"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// execution is one program of a session, or one call of a handle, from its admission to its outcome.
type execution struct {
	session *session
	id      string
	ctx     context.Context
	cancel  context.CancelCauseFunc

	// lost counts the streamed lines that found no room since the last one that did. Of the Executor's callback, then of
	// the execution's goroutine.
	lost protocol.Truncated
	told *time.Timer // has the news that it runs written; likewise

	open    map[uint64]*call  // tool calls and fetches without an answer, by request id; guarded by session.mu
	program uint64            // a hash of the method and its params
	asked   []json.RawMessage // ids of the requests that the outcome answers; guarded by session.mu

	order   sync.Mutex // held while a call of the host is queued
	settled bool       // no call is sent any more
}

// work has the Executor do what the params of a method ask for.
type work func(r *execution, params json.RawMessage) (*protocol.Outcome, error)

// launch admits an execution and does its work on a goroutine of its own. The id is taken here, so that a cancel which
// follows finds it. False where nothing was launched: the request was refused, or joined another.
func (x *session) launch(m protocol.Message, do work) (bool, error) {
	if m.Params == nil {
		m.Params = json.RawMessage(`{}`)
	}
	id, err := executionID(m.Params, x.srv.cfg.bounds())
	if err != nil {
		return false, err
	}
	run, err := x.begin(id, m)
	if run == nil {
		return false, err
	}
	go run.serve(m, do)
	return true, nil
}

// execute is the method execute.
func (x *session) execute(m protocol.Message) (json.RawMessage, error) {
	_, err := x.launch(m, (*execution).execute)
	return nil, err
}

// executionID finds the caller's id of an execution. Everything else of params is decoded later.
func executionID(params json.RawMessage, b protocol.Bounds) (id string, err error) {
	err = protocol.Members(params, b, func(key []byte, value json.RawMessage) error {
		if string(key) == "execution" && len(value) <= 6*protocol.MaxExecutionBytes+len(`""`) {
			// An id of another kind or length is refused with the right words when all is decoded.
			_ = json.Unmarshal(value, &id)
		}
		return nil
	})
	if err != nil {
		return "", protocol.FieldError("", "params must be an object: %s", err)
	}
	return id, nil
}

// begin registers an execution; without an id it gets one. Its serve must follow. It is nil for a request that was sent
// again, which joins the first.
func (x *session) begin(id string, m protocol.Message) (*execution, error) {
	owed, now := x.srv.debts.owed(x), x.srv.config()
	program := programOf(m)
	// A call of a handle begins nothing new: in maintenance, and while a session drains, the Executor says whether what it
	// calls is still there. A session that drains and has nothing to wait for is closing.
	anew := m.Method != protocol.MethodHandleInvoke
	refusal := x.srv.cfg.Admit()
	x.mu.Lock()
	defer x.mu.Unlock()
	if id == "" {
		id = "x-" + randomID()
	}
	first, live := x.running[id]
	switch {
	case live && first.program == program && first.join(m.ID):
		return nil, nil
	case anew && refusal != nil:
		return nil, refusal
	case x.revoked:
		return nil, errRevoked()
	case x.draining && (anew || x.live == 0 && !x.lingers):
		return nil, errDraining()
	case live || x.ended.has(id):
		return nil, protocol.FieldError("execution", "%q has been used in this session", id)
	case x.over:
		return nil, protocol.Errorf(protocol.Cancelled, "the session has ended")
	case owed > x.srv.cfg.OwedBytes:
		e := protocol.Errorf(protocol.Overloaded, "%d bytes of answers wait for this client to read them", owed)
		e.RetryAfterMs = 1000
		return nil, e
	case len(x.running) >= now.MaxExecutions:
		return nil, protocol.Errorf(protocol.SessionLimit,
			"%d executions are under way in this session, which is the limit", len(x.running))
	case !x.srv.runsOf.take(x.identity, now.MaxCallerExecutions):
		return nil, errCallerExecutions(now)
	}
	run := &execution{session: x, id: id, open: map[uint64]*call{}, program: program, asked: []json.RawMessage{m.ID}}
	run.ctx, run.cancel = context.WithCancelCause(x.ctx)
	x.running[id] = run
	x.live++
	x.work.Add(1)
	return run, nil
}

var programSeed = maphash.MakeSeed()

func programOf(m protocol.Message) uint64 {
	var h maphash.Hash
	h.SetSeed(programSeed)
	_, _ = h.WriteString(m.Method)
	_, _ = h.Write(m.Params)
	return h.Sum64()
}

// maxJoined bounds the requests for one execution.
const maxJoined = 8

// join has the request answered with the execution's outcome; one with the id of another is the same request, and is
// answered once. False when there are too many. With session.mu.
func (r *execution) join(id json.RawMessage) bool {
	for _, other := range r.asked {
		if string(other) == string(id) {
			return true
		}
	}
	if len(r.asked) == maxJoined {
		return false
	}
	r.asked = append(r.asked, id)
	return true
}

// finish frees the place of an execution before its answer is sent, so that the host may use it at once. The id of one
// that did not run may be used again. It returns the ids of the requests to answer.
func (x *session) finish(run *execution, ran bool) (asked []json.RawMessage) {
	run.cancel(nil)
	x.srv.runsOf.give(x.identity)
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.running, run.id)
	if ran {
		x.ended.add(run.id)
	}
	return run.asked
}

// answered follows the answer of an execution.
func (x *session) answered() {
	x.mu.Lock()
	aged := x.draining && !x.lingers && x.reason != stopping
	x.mu.Unlock()
	if aged { // it may have been the first to retain something
		x.linger()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.live--
	x.closeIfDrained()
	x.work.Done()
}

// serve does the work and answers the request, and those that joined it.
func (r *execution) serve(m protocol.Message, do work) {
	x := r.session
	defer x.answered()
	outcome, err := r.run(m.Params, do)
	if err != nil {
		asked := x.finish(r, false)
		r.settle()
		logEnd(x.log, r.id, nil, err)
		for _, id := range asked {
			x.answerError(id, protocol.AsError(err))
		}
		return
	}
	logEnd(x.log, r.id, outcome, nil)
	text := x.outcomeText(m.ID, outcome)
	paid := x.owe(text.Len()) // before finish, so that no execution begins in between
	asked := x.finish(r, true)
	r.settle()
	if x.resumable { // what is kept counts by itself
		paid()
	} else {
		defer paid()
	}
	x.send(text...)
	for _, id := range asked[1:] {
		x.send(x.outcomeText(id, outcome)...)
	}
}

// outcomeText is the answer of an execution; none where nobody is left to read it.
func (x *session) outcomeText(id json.RawMessage, outcome *protocol.Outcome) protocol.Text {
	if x.out.Closed() {
		return nil
	}
	return protocol.OutcomeResult(id, outcome)
}

// owe counts an answer of n bytes that waits for room in the queue, until paid is called.
func (x *session) owe(n int) (paid func()) {
	list, paid := x.srv.debts.owe(x, int64(n))
	writeOff(list)
	return paid
}

func (r *execution) run(params json.RawMessage, do work) (outcome *protocol.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil { // a fault of ours must not take the other sessions along
			r.session.log.Error("an execution panicked", "execution", r.id, "panic", p, "stack", string(debug.Stack()))
			outcome, err = nil, protocol.Errorf(protocol.Internal, "the service failed at this execution")
		}
	}()
	return do(r, params)
}

// execute runs a program.
func (r *execution) execute(params json.RawMessage) (*protocol.Outcome, error) {
	srv := r.session.srv
	p, err := protocol.DecodeExecute(params, srv.cfg.bounds())
	if err != nil {
		return nil, err
	}
	if p.Retain != nil && srv.retainer == nil {
		return nil, protocol.FieldError("retain", "is not possible: this service retains nothing")
	}
	p.Execution = r.id
	req := r.host(p.Logs)
	req.Execute = *p
	if len(p.Providers) > 0 {
		req.Start = r.startCall
	}
	if p.Network == protocol.NetworkHost {
		req.Fetch = r.fetch
	}
	return srv.exec.Execute(r.ctx, req)
}

// host is the part of a request that is the session's.
func (r *execution) host(logs protocol.LogOptions) executor.Request {
	req := executor.Request{Identity: r.session.identity, Session: r.session.id, OnState: r.onState}
	if logs.Stream {
		req.OnLog = r.onLog
	}
	return req
}

// runningWithin is how long the news that an execution runs may wait for a message that it can leave with.
const runningWithin = 20 * time.Millisecond

// onState tells the host of progress. It is left out when the host does not read.
func (r *execution) onState(s protocol.State) {
	s.Execution = r.id
	params, err := protocol.EncodeParams(s)
	if err != nil {
		return
	}
	text := protocol.AppendNotification(nil, protocol.MethodExecutionState, params)
	switch out := r.session.out; {
	case s.State != protocol.StateRunning:
		out.TrySend(text)
	case !out.TryQueue(text):
	case r.told == nil:
		r.told = time.AfterFunc(runningWithin, out.Hurry)
	default: // its first worker died before it heard of it
		r.told.Reset(runningWithin)
	}
}

// onLog streams one line. Where the host does not read fast enough, lines are left out and counted; the outcome has
// them all.
func (r *execution) onLog(l protocol.Log) {
	if r.lost.Lines == 0 || r.session.out.TrySend(r.lostLines(l.Time)) {
		r.lost = protocol.Truncated{}
		if r.session.out.TrySend(protocol.AppendLogNotification(nil, &protocol.LogParams{Execution: r.id, Log: l})) {
			return
		}
	}
	r.lost.Lines++
	r.lost.Bytes += int64(len(l.Text))
}

// lostLines is the marker that stands for lines left out.
func (r *execution) lostLines(time float64) []byte {
	lost := r.lost
	return protocol.AppendLogNotification(nil, &protocol.LogParams{Execution: r.id, Log: protocol.Log{
		Level: protocol.LevelWarn, Time: time, Text: "lines left out of the stream: the client reads too slowly", Truncated: &lost,
	}})
}

// settle takes back the calls that the host has not answered. After it only the answer is sent.
func (r *execution) settle() {
	r.order.Lock()
	r.settled = true
	r.order.Unlock()
	if r.told != nil {
		r.told.Stop()
	}
	if r.lost.Lines > 0 {
		r.session.send(r.lostLines(0))
	}
	for _, c := range r.session.takeBack(r) {
		r.session.send(r.cancelText(c))
	}
}

// cancelText is the notification that nobody waits for c any more.
func (r *execution) cancelText(c *call) []byte {
	params, _ := protocol.EncodeParams(protocol.ToolCancel{Execution: r.id, Call: c.number}) // it has no raw fields
	return protocol.AppendNotification(nil, protocol.MethodToolCancel, params)
}

// cancelExecution is the method cancel.
func (x *session) cancelExecution(m protocol.Message) (json.RawMessage, error) {
	var p protocol.Cancel
	if err := protocol.DecodeParams(m.Params, &p); err != nil {
		return nil, err
	}
	if p.Execution == "" {
		return nil, protocol.FieldError("execution", "is missing")
	}
	if len(p.Reason) > maxReasonBytes {
		return nil, protocol.FieldError("reason", "has more than %d bytes", maxReasonBytes)
	}
	x.mu.Lock()
	run, live := x.running[p.Execution]
	x.mu.Unlock()
	result, err := protocol.EncodeParams(protocol.CancelResult{Cancelled: live})
	if err != nil || !live {
		return result, err
	}
	if m.Kind == protocol.KindRequest { // before the outcome
		x.send(protocol.AppendResult(nil, m.ID, result))
	}
	run.cancel(protocol.Errorf(protocol.Cancelled, "%s", cmp.Or(p.Reason, "cancelled by the host")))
	return nil, nil
}

// maxReasonBytes bounds the reason of a cancel, which ends up in an error's message.
const maxReasonBytes = 1024
