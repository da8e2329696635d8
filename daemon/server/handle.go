package server

import (
	"encoding/json"
	"sync"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// invoke is the method handle.invoke: an execution like any other, but of what the session retains. Calls begin in the order
// in which they came, and before what is released after them: nothing else is read until this one has begun or is answered.
func (x *session) invoke(m protocol.Message) (json.RawMessage, error) {
	ahead := make(chan struct{})
	begun := sync.OnceFunc(func() { close(ahead) })
	launched, err := x.launch(m, func(r *execution, params json.RawMessage) (*protocol.Outcome, error) {
		defer begun() // where it never did
		return r.invoke(params, begun)
	})
	if launched {
		<-ahead
	}
	return nil, err
}

// invoke calls a handle. Whether the retained program has tools and a network is known to the Executor.
func (r *execution) invoke(params json.RawMessage, begun func()) (*protocol.Outcome, error) {
	srv := r.session.srv
	p, err := protocol.DecodeHandleInvoke(params, srv.cfg.bounds())
	if err != nil {
		return nil, err
	}
	if srv.retainer == nil {
		return nil, protocol.Errorf(protocol.HandleUnknown, "there is no such handle: this service retains nothing")
	}
	p.Execution = r.id
	host := r.host(p.Logs)
	host.Start, host.Fetch = r.startCall, r.fetch
	return srv.retainer.Invoke(r.ctx, executor.Invocation{HandleInvoke: *p, Host: host, Begun: begun})
}

// counter is an Executor that tells how many executions it retains for a session.
type counter interface{ Retained(session string) int }

// retained is how many executions are retained for a session, 0 where the Executor does not tell. Call it without locks.
func (s *Server) retained(session string) int {
	if c, tells := s.exec.(counter); tells {
		return c.Retained(session)
	}
	return 0
}

// release is the method handle.release.
func (x *session) release(m protocol.Message) (json.RawMessage, error) {
	p, err := protocol.DecodeHandleRelease(m.Params, x.srv.cfg.bounds())
	if err != nil {
		return nil, err
	}
	released := 0
	if r := x.srv.retainer; r != nil {
		released = r.Release(x.id, p.Handles)
	}
	return protocol.EncodeParams(protocol.HandleReleased{Released: released})
}
