package executor

import (
	"context"
	"iter"
	"runtime"
	"sync"
	"weak"

	"github.com/executord/executord/ipc/protocol"
)

// Handles makes the handles in the values of programs callable. One is for one Retainer and one session there.
//
// A Handle that is not released is so some time after nothing refers to it any more. All methods may be called by several
// goroutines at once.
type Handles struct {
	retainer Retainer
	host     Request

	mu        sync.Mutex
	made      map[string]weak.Pointer[Handle]
	dropped   []string      // ids of those that nothing refers to
	releasing chan struct{} // closed when the goroutine that releases them has ended; nil where there is none
}

// NewHandles makes Handles of a session, host.Session, which is that of the executions that retain them. The callbacks of
// host answer what is called meanwhile.
func NewHandles(r Retainer, host Request) *Handles {
	return &Handles{retainer: r, host: host, made: map[string]weak.Pointer[Handle]{}}
}

// Of is the Handle for h, the same one as long as something refers to it.
func (s *Handles) Of(h protocol.Handle) *Handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	if made := s.made[h.ID].Value(); made != nil {
		return made
	}
	made := &Handle{set: s, handle: h}
	s.made[h.ID] = weak.Make(made)
	made.cleanup = runtime.AddCleanup(made, s.drop, h.ID)
	return made
}

// In makes the handles in v, in the order of its text. The error is that of protocol.Decode.
func (s *Handles) In(v protocol.Value) ([]*Handle, error) {
	found, err := protocol.Handles(v)
	if err != nil {
		return nil, err
	}
	list := make([]*Handle, len(found))
	for i, h := range found {
		list[i] = s.Of(h)
	}
	return list, nil
}

// Close releases all handles that were made, and waits until that is done. Those that values have but nobody made
// are released where all of the session's are, by Retainer.ReleaseSession.
func (s *Handles) Close() {
	s.mu.Lock()
	for id := range s.made {
		s.dropped = append(s.dropped, id)
	}
	clear(s.made)
	s.release()
	releasing := s.releasing
	s.mu.Unlock()
	if releasing != nil {
		<-releasing
	}
}

// drop is called by the collector, which must not wait, for a Handle that nothing refers to.
func (s *Handles) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if made, known := s.made[id]; !known || made.Value() != nil { // it was released, or made again
		return
	}
	delete(s.made, id)
	s.dropped = append(s.dropped, id)
	s.release()
}

// release has a goroutine release what was dropped. What is dropped while it waits for an answer goes together. With mu.
func (s *Handles) release() {
	if s.releasing != nil || len(s.dropped) == 0 {
		return
	}
	s.releasing = make(chan struct{})
	go func() {
		for ids := s.next(); ids != nil; ids = s.next() {
			s.retainer.Release(s.host.Session, ids)
		}
	}()
}

// next takes some of what was dropped; nil when there is nothing, and the goroutine is not needed any more.
func (s *Handles) next() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.dropped) == 0 {
		close(s.releasing)
		s.dropped, s.releasing = nil, nil
		return nil
	}
	n := min(len(s.dropped), protocol.MaxReleased)
	ids, s.dropped = s.dropped[:n:n], s.dropped[n:]
	return ids
}

// Handle is a function, an iterator or a stream of a program that is retained. In arguments and in answers to tools it is
// that again. All methods may be called by several goroutines at once; the program sees their calls interleave.
//
// An error is a *protocol.Error: how the call ended, or why it could not be made. protocol.HandleUnknown says that what it
// belongs to has ended.
type Handle struct {
	set     *Handles
	handle  protocol.Handle
	cleanup runtime.Cleanup
}

// Handle is what stands for it in values.
func (h *Handle) Handle() protocol.Handle { return h.handle }

// Invoke makes any call, whose handle is filled in, and tells all of its end: see Retainer.
func (h *Handle) Invoke(ctx context.Context, i protocol.HandleInvoke) (*protocol.Outcome, error) {
	defer runtime.KeepAlive(h)
	i.Handle = h.handle.ID
	return h.set.retainer.Invoke(ctx, Invocation{HandleInvoke: i, Host: h.set.host})
}

// Call calls a function with arguments, encoded by protocol.Marshal, and returns what it returns, or what its promise is
// fulfilled with.
func (h *Handle) Call(ctx context.Context, args ...any) (protocol.Value, error) {
	return h.do(ctx, "", args...)
}

// CallInto is Call with the value decoded into what the pointer into points to, by protocol.Unmarshal, whose error may be
// another.
func (h *Handle) CallInto(ctx context.Context, into any, args ...any) error {
	v, err := h.Call(ctx, args...)
	if err != nil {
		return err
	}
	return protocol.Unmarshal(v, into)
}

func (h *Handle) do(ctx context.Context, method protocol.HandleMethod, args ...any) (protocol.Value, error) {
	defer runtime.KeepAlive(args) // handles among them
	i := protocol.HandleInvoke{Method: method}
	for n, a := range args {
		v, err := protocol.Marshal(a)
		if err != nil {
			return nil, argumentError(n, err)
		}
		i.Args = append(i.Args, v)
	}
	o, err := h.Invoke(ctx, i)
	if err == nil {
		err = o.Err()
	}
	if err != nil {
		return nil, err
	}
	return o.Value, nil
}

// argumentError says which argument cannot be encoded.
func argumentError(n int, err error) error {
	return protocol.FieldError("args", "argument %d cannot be encoded: %s", n+1, err)
}

// Next takes the next item of an iterator, or chunk of a stream. At the end done is true, and v is what the iterator
// returned.
func (h *Handle) Next(ctx context.Context) (v protocol.Value, done bool, err error) {
	result, err := h.do(ctx, protocol.HandleNext)
	if err != nil {
		return nil, false, err
	}
	var step struct {
		Done  bool           `json:"done"`
		Value protocol.Value `json:"value"`
	}
	if err := protocol.Unmarshal(result, &step); err != nil {
		return nil, false, protocol.Errorf(protocol.Internal, "the result of an iterator cannot be read: %s", err)
	}
	if step.Value == nil {
		step.Value = protocol.UndefinedValue
	}
	return step.Value, step.Done, nil
}

// Return tells an iterator or a stream that nobody wants the rest.
func (h *Handle) Return(ctx context.Context) error {
	_, err := h.do(ctx, protocol.HandleReturn)
	return err
}

// All takes the items of an iterator or the chunks of a stream one by one, as the loop asks for them. An error is the last
// of the sequence. A loop that leaves early has Return called, whose error is lost.
func (h *Handle) All(ctx context.Context) iter.Seq2[protocol.Value, error] {
	return func(yield func(protocol.Value, error) bool) {
		ended := false
		defer func() {
			if !ended {
				_ = h.Return(ctx)
			}
		}()
		for {
			v, done, err := h.Next(ctx)
			if ended = done || err != nil; ended {
				if err != nil {
					yield(nil, err)
				}
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// Release gives the handle up, and returns when the Retainer has. Calls that are under way go on. Later calls are
// protocol.HandleUnknown.
func (h *Handle) Release() {
	h.cleanup.Stop()
	h.set.mu.Lock()
	if h.set.made[h.handle.ID].Value() == h {
		delete(h.set.made, h.handle.ID)
	}
	h.set.mu.Unlock()
	h.set.retainer.Release(h.set.host.Session, []string{h.handle.ID})
}
