package sandbox

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
	"github.com/executord/executord/sandbox/confine"
	"github.com/executord/executord/sandbox/entry"
	"github.com/executord/executord/sandbox/runtime"
	"github.com/executord/executord/sandbox/v8"
)

// A spare isolate is made before its program is known, with these limits; Begin lowers them to the program's.
const (
	spareHeapBytes   = 2 << 30 // V8's pointers reach 4 GiB
	spareBufferBytes = 64 << 20
)

// analyzerHeap bounds the isolate that reads entries.
const analyzerHeap = 256 << 20

// server is a worker: its channel, its isolates, and the execution under way.
type server struct {
	conn          *worker.Conn
	snapshot      *v8.Snapshot // nil: start plainly
	analyzer      *v8.Isolate  // also the anchor that keeps V8's shared heap alive
	analyzerCache []byte
	spare         *v8.Isolate
	spareFor      *hostSlot
	restored      time.Duration
	services      services
	memory        *memory
	thread        int32

	renewal renewal
	lookout *lookout
	next    *worker.Execute // heard while nothing ran; belongs to whoever has the lookout's ears
	early   *worker.Cancel  // of next, heard with it
	current atomic.Pointer[execution]
	active  atomic.Pointer[v8.Isolate] // what a stop must reach
	spoilt  atomic.Bool                // the analyzer was stopped, or ran out of memory
	exit    func(status int)           // os.Exit
}

// Serve runs a worker on its channel over socket until the parent closes it, which ends the process. It must be called
// on the main goroutine, pinned to its thread. snapshot is the file that MakeSnapshot made, in memory that stays and is not
// Go's; empty to start plainly.
func Serve(conn *worker.Conn, socket *worker.Socket, snapshot []byte) error {
	s := &server{conn: conn, memory: nil, thread: threadClock(), exit: os.Exit}
	s.renewal.thread = s.thread
	var err error
	if s.lookout, err = newLookout(conn, socket); err != nil {
		return err
	}
	s.lookout.hear, s.lookout.look, s.lookout.lost = s.hear, s.look, func() { s.exit(worker.ExitClosed) }
	var caches map[string][]byte
	if len(snapshot) > 0 {
		image, err := openSnapshot(snapshot)
		if err != nil {
			fmt.Fprintf(os.Stderr, "executor-worker: %v; starting without it\n", err)
		} else {
			s.snapshot, s.analyzerCache, caches = v8.MapSnapshot(image.blob), image.analyzer, image.caches
		}
	}
	s.services = services{caches: caches, parts: map[string]v8.Part{}}
	if err := s.warm(); err != nil {
		return err
	}
	if err := s.greet(seal()); err != nil {
		return err
	}
	go s.beat()
	go s.lookout.watch()
	for {
		s.lookout.wait(time.Time{}, func() bool { return s.next != nil })
		if request, cancel := s.next, s.early; request != nil {
			s.next, s.early = nil, nil
			s.execute(*request, cancel)
		}
	}
}

// warm makes the isolates that wait for work.
func (s *server) warm() error {
	if err := s.makeAnalyzer(); err != nil {
		return err
	}
	if err := s.restore(); err != nil {
		return err
	}
	s.memory = openMemory()
	return nil
}

// greet tells the parent who is there, confined how, and that it can have work.
func (s *server) greet(confined confine.Outcome) error {
	hello := worker.Hello{Version: worker.Version, PID: uint32(os.Getpid()), Engine: v8.Version(), Layers: confined.Layers, Missing: confined.Missing}
	if err := s.conn.Send(hello); err != nil {
		return err
	}
	return s.conn.Send(worker.Ready{Restore: s.restored})
}

func (s *server) makeAnalyzer() (err error) {
	s.analyzer, err = newAnalyzer(s.snapshot, s.analyzerCache)
	return err
}

// restore makes the next spare isolate.
func (s *server) restore() error {
	begin := time.Now()
	slot := &hostSlot{}
	iso, err := v8.New(v8.Config{
		Snapshot: s.snapshot, Library: runtime.Source(), HeapBytes: spareHeapBytes, BufferBytes: spareBufferBytes,
		AllowEval: true, AllowWasm: true, Host: slot,
	})
	if err != nil {
		return err
	}
	s.spare, s.spareFor, s.restored = iso, slot, time.Since(begin)
	return nil
}

// hostSlot is the host of a spare isolate, filled in when its program is known.
type hostSlot struct{ *execution }

// execute runs one program on the spare isolate, answers, and then makes the next spare, once nothing of the program is
// retained.
func (s *server) execute(request worker.Execute, cancel *worker.Cancel) {
	v8.SetExecution(request.ID)
	iso := s.spare
	s.spare = nil
	e := &execution{
		services: s.services.begin(), request: request, iso: iso, send: s.conn.Send, gather: s.conn.Gather, flush: func() { _ = s.conn.Flush() }, modules: newGraph(request.Name, request.Modules), timers: newTimers(),
		pending: map[uint64]pending{}, listen: s.lookout.wait,
	}
	own := s.newTask(e, request.ID, request.Limits)
	e.task = own
	e.add(own)
	s.spareFor.execution = e
	s.active.Store(iso)
	s.memory.bound(request)
	s.current.Store(e)
	if cancel != nil {
		own.dog.halt(protocol.Cancelled, cancel.Reason)
	}
	s.lookout.arm(tick)
	result := e.run(s.analyze)
	if result.Retained {
		own.dog.finish()
		if reason, detail := own.dog.why(); reason != "" { // stopped since: the isolate is of no use
			result = worker.Result{ID: own.id, Error: marshalError(stopError(own.limits, reason, detail))}
		}
	}
	if result.Retained {
		e.remove(own)
		e.giveUp(own)
		e.retained.Store(true)
		s.report(e, own, result)
		iso.FreeValue()
		v8.SetExecution(0)
		s.keep(e)
		s.current.Store(nil)
		e.end()
	} else {
		s.current.Store(nil)
		e.end()
		s.report(e, own, result)
		own.dog.finish()
	}
	s.lookout.arm(0)
	s.active.Store(nil)
	v8.SetExecution(0)
	s.renew(iso)
}

// newTask makes a task whose clocks run.
func (s *server) newTask(e *execution, id uint64, l worker.Limits) *task {
	t := &task{id: id, limits: l, clocks: newClocks(l, s.thread), console: newConsole(id, l, s.conn.Send)}
	t.dog = &watchdog{clocks: t.clocks, stop: s.terminate, die: func(reason protocol.Type, detail string) { s.die(e, t, reason, detail) }}
	return t
}

// report sends the result of a task with its statistics. A failure of our own is no outcome of a program: the process ends.
func (s *server) report(e *execution, t *task, r worker.Result) {
	if e.fault != nil {
		s.fail(e.fault)
	}
	r.CPU, r.Wall, _ = t.clocks.read()
	if stats, err := e.iso.Stats(); err == nil {
		r.PeakHeapBytes = stats.PeakHeapBytes
	}
	r.ToolCalls, r.Reached = t.calls, slices.Sorted(maps.Keys(t.reached))
	t.console.flush()
	_ = s.conn.Send(r)
}

// analyze reads an entry in the analyzer's isolate, under the clocks of the execution.
func (s *server) analyze(code, form string) (string, error) {
	previous := s.active.Swap(s.analyzer)
	defer s.active.Store(previous)
	plan, err := runtime.Analyze(s.analyzer.Call, code, form)
	if err != nil {
		s.spoilt.Store(true)
	}
	return plan, err
}

var _ entry.Analyze = (*server)(nil).analyze

// terminate reaches whichever isolate runs now, and the loop where it waits.
func (s *server) terminate() {
	signal(s.lookout.stop)
	iso := s.active.Load()
	if iso == nil {
		return
	}
	if iso == s.analyzer {
		s.spoilt.Store(true)
	}
	if e := s.current.Load(); e == nil || !without(e.request, "engine") {
		iso.Terminate()
	}
}

// countBuffers has the program's isolate count what V8 does not refuse.
func (s *server) countBuffers() {
	if iso := s.active.Load(); iso != nil && iso != s.analyzer {
		iso.CountBuffers()
	}
}

// die ends the process of a task that the engine would not stop. What it printed is sent first.
func (s *server) die(e *execution, t *task, reason protocol.Type, detail string) {
	status := map[protocol.Type]int{
		protocol.CPUTimeout: worker.ExitCPU, protocol.WallTimeout: worker.ExitWall, protocol.TotalTimeout: worker.ExitTotal,
		protocol.Cancelled: worker.ExitCancelled,
	}[reason]
	if status == 0 {
		status = worker.ExitFatal
	}
	answered := s.current.Load() == nil
	if !answered && without(e.request, "watchdog") {
		return
	}
	flushed := make(chan struct{})
	go func() {
		if !answered {
			for _, each := range e.active() {
				each.console.flush()
			}
			_ = s.conn.Send(worker.LastWord{ID: t.id, Type: string(reason), Detail: stopMessage(t.limits, reason, detail)})
		}
		_ = s.conn.Flush()
		close(flushed)
	}()
	select {
	case <-flushed:
	case <-time.After(50 * time.Millisecond):
	}
	s.exit(status)
}

// hear acts on one frame of the parent's, on whichever thread reads.
func (s *server) hear(m worker.Message) {
	e := s.current.Load()
	switch m := m.(type) {
	case worker.Execute:
		if e != nil || s.next != nil { // one at a time: the parent broke the contract
			s.exit(worker.ExitProtocol)
		}
		s.next = &m
	case worker.Invoke:
		s.invoke(e, m)
	case worker.Release:
		if e != nil {
			e.inbox.ask(ask{released: m.Handles})
		}
	case worker.ToolResult:
		if e != nil && e.find(m.ID) != nil {
			e.inbox.put(m)
		}
	case worker.Cancel:
		if e != nil {
			if t := e.find(m.ID); t != nil {
				t.dog.halt(protocol.Cancelled, m.Reason)
				break
			}
		}
		if s.next != nil && s.next.ID == m.ID {
			s.early = &m
		}
	}
}

// look watches the execution under way, and what comes after it.
func (s *server) look() time.Duration {
	e := s.current.Load()
	if e == nil {
		return s.lookAtRenewal()
	}
	s.countBuffers()
	next := time.Duration(0)
	for _, t := range e.active() {
		if n := t.dog.look(); n > 0 && (next == 0 || n < next) {
			next = n
		}
	}
	return next
}

// beat sends heartbeats, from a goroutine that JavaScript cannot block.
func (s *server) beat() {
	for range time.Tick(worker.HeartbeatInterval) {
		h := worker.Heartbeat{}
		h.RSSBytes, _ = s.memory.read()
		if e := s.current.Load(); e != nil {
			if list := e.active(); len(list) > 0 {
				h.ID = list[0].id
				h.CPU, h.Wall, _ = list[0].clocks.read()
			}
			h.HeapBytes = e.iso.HeapBytes()
		}
		if s.conn.Send(h) != nil {
			return
		}
	}
}
