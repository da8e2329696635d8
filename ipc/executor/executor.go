// Package executor is the contract that everything which runs programs implements: the in-process pool
// (daemon/pool) and the remote client (ipc/client). Code written against it does not know which of the two it has.
//
// An Executor may be used by several goroutines at once.
package executor

import (
	"context"
	"io"

	"github.com/executord/executord/ipc/protocol"
)

// Executor runs programs.
type Executor interface {
	// Execute runs one program and blocks until it ended. A program that began to run ends in an Outcome, with a nil
	// error, however badly it ended; one that could not be run at all gives a *protocol.Error and no Outcome.
	// Cancelling ctx stops the program, running or queued; the outcome is then of type protocol.Cancelled.
	// No callback of the request begins once Execute returned; a Call may still run.
	Execute(ctx context.Context, r Request) (*protocol.Outcome, error)
	// Close cancels what still runs, waits for it and frees the executor. Later calls of Execute fail.
	Close() error
}

// Retainer is an Executor that keeps the isolates of executions which ask for it (protocol.Retain), so that their host can
// call the functions in their values: by its handles, which are its session's alone.
type Retainer interface {
	Executor
	// Invoke calls one handle, and ends as Execute does. A handle that is not there any more, or never was, is a
	// *protocol.Error of type protocol.HandleUnknown that says since when and why.
	Invoke(ctx context.Context, i Invocation) (*protocol.Outcome, error)
	// Release gives up handles of a session, by their ids or those of retained executions, and returns how many there
	// were. A retained execution without handles ends, after what is under way.
	Release(session string, handles []string) int
	// ReleaseSession ends all retained executions of a session, and cancels what is under way in them. Whether an execution
	// of the session that has no outcome yet is retained after it is the Executor's own: await those first.
	ReleaseSession(session string)
}

// Invocation is one call of a handle.
type Invocation struct {
	protocol.HandleInvoke

	// Host answers what is called meanwhile: the callbacks, Identity and Session of a Request. Its program is the retained
	// one, whatever else the fields of the Request say.
	Host Request

	// Begun, where it is set, is called at most once: when the call is on its way, ahead of those whose Invoke is called
	// after it and of what is released then. It is not called for a call that is refused. It must not block. The service
	// reads no further in the session until then, so that an Executor which does not call it stops the session meanwhile.
	Begun func()
}

// Request is one program and its host.
type Request struct {
	protocol.Execute

	// Identity names the caller for fairness between callers. The remote client ignores it: its identity is that of
	// its connection.
	Identity string

	// Session names the caller's session for the operator; empty for none. The remote client ignores it.
	Session string

	// Call answers the program's tool calls. It is called on its own goroutine for every call, many at once; ctx ends
	// with the execution. An error is thrown in the program: a *protocol.ThrownError as it says, any other as an Error
	// with its text. Nil means no tools. A call that the program made is always begun, even if the program ended right
	// after it without waiting; ctx may then be done already.
	Call func(ctx context.Context, c ToolCall) (protocol.Value, error)

	// Start, when set, takes the place of Call. It is called in the order in which the program made its calls, from one
	// goroutine, and must not block; answer is to be called once, from any goroutine, with what Call would return. It is
	// for relays, which need no goroutine to wait on. The remote client does not use it.
	Start func(ctx context.Context, c ToolCall, answer func(protocol.Value, error))

	// Fetch performs the program's HTTP exchanges with network "host", which is refused without it; see package ipc/fetch
	// for one over an http.RoundTripper. It is called as Call is, and returns when the head of the response is there. ctx
	// ends with the execution, or when the program gives the exchange up, and covers the body too. An error is thrown in
	// the program as one of Call is. Network "direct" does not use it.
	Fetch Fetch

	// OnLog hears each console line as it comes, OnState of the progress before the outcome. Both are called from one
	// goroutine at a time, in order, and must not block for long. Nil means not interested.
	OnLog   func(protocol.Log)
	OnState func(protocol.State)
}

// ToolCall is one call of a tool by a running program.
type ToolCall struct {
	Execution string
	Call      uint64 // unique in the execution
	Provider  string
	Path      []string
	Args      protocol.Value // JSON array of Values
}

// Ask makes a tool call by Start or Call, whichever the request has, and waits for its answer or the end of ctx. It is
// for executors that have a goroutine to wait on.
func (r *Request) Ask(ctx context.Context, c ToolCall) (protocol.Value, error) {
	if r.Start == nil {
		return r.Call(ctx, c)
	}
	type answer struct {
		value protocol.Value
		err   error
	}
	answered := make(chan answer, 1)
	r.Start(ctx, c, func(v protocol.Value, err error) { answered <- answer{v, err} })
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Fetch performs one HTTP exchange, without following redirects. It may be called by several goroutines at once.
type Fetch func(ctx context.Context, f FetchCall) (*FetchResponse, error)

// FetchCall is one HTTP exchange that a running program asks for.
type FetchCall struct {
	Execution string
	Call      uint64 // unique in the execution, among tool calls too
	protocol.FetchRequest
}

// FetchResponse is the answer to an exchange.
type FetchResponse struct {
	protocol.FetchHead
	Body io.ReadCloser // nil for none; whoever asked closes it, at any time and maybe while it is read
}
