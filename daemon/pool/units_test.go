package pool

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// queueModel is the queue as a slow and obvious thing: a list per identity, and whose turn it is.
type queueModel struct {
	lanes map[string][]*waiter
	turns []string
}

func (m *queueModel) push(w *waiter) {
	if len(m.lanes[w.identity]) == 0 {
		m.turns = append(m.turns, w.identity)
	}
	m.lanes[w.identity] = append(m.lanes[w.identity], w)
}

func (m *queueModel) pop() *waiter {
	if len(m.turns) == 0 {
		return nil
	}
	id := m.turns[0]
	w := m.lanes[id][0]
	m.lanes[id] = m.lanes[id][1:]
	m.turns = m.turns[1:]
	if len(m.lanes[id]) > 0 {
		m.turns = append(m.turns, id)
	}
	return w
}

func (m *queueModel) remove(w *waiter) bool {
	i := slices.Index(m.lanes[w.identity], w)
	if i < 0 {
		return false
	}
	m.lanes[w.identity] = slices.Delete(slices.Clone(m.lanes[w.identity]), i, i+1)
	if len(m.lanes[w.identity]) == 0 {
		m.turns = slices.DeleteFunc(m.turns, func(id string) bool { return id == w.identity })
	}
	return true
}

func (m *queueModel) clone() *queueModel {
	c := &queueModel{lanes: map[string][]*waiter{}, turns: slices.Clone(m.turns)}
	for id, l := range m.lanes {
		c.lanes[id] = slices.Clone(l)
	}
	return c
}

// position is how many pops it takes to get w.
func (m *queueModel) position(w *waiter) int {
	c := m.clone()
	for n := 1; ; n++ {
		if c.pop() == w {
			return n
		}
	}
}

func TestFairQueueModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q fairQueue
		model := &queueModel{lanes: map[string][]*waiter{}}
		var all []*waiter
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				w := newWaiter(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "identity"))
				all = append(all, w)
				model.push(w)
				if got, want := q.push(w), model.position(w); got != want {
					t.Fatalf("position %d, want %d", got, want)
				}
			},
			"pop": func(t *rapid.T) {
				if got, want := q.pop(), model.pop(); got != want {
					t.Fatalf("popped %p, want %p", got, want)
				}
			},
			"remove": func(t *rapid.T) {
				if len(all) == 0 {
					return
				}
				w := rapid.SampledFrom(all).Draw(t, "waiter")
				if got, want := q.remove(w), model.remove(w); got != want {
					t.Fatalf("removed %t, want %t", got, want)
				}
			},
			"": func(t *rapid.T) {
				size, lanes := 0, 0
				for _, l := range model.lanes {
					size += len(l)
					if len(l) > 0 {
						lanes++
					}
				}
				if q.size != size || len(q.lanes) != lanes || q.ring.Len() != lanes {
					t.Fatalf("size %d in %d lanes and %d turns, want %d in %d", q.size, len(q.lanes), q.ring.Len(), size, lanes)
				}
			},
		})
	})
}

func TestPushFrontIsNext(t *testing.T) {
	var q fairQueue
	q.push(newWaiter("a"))
	q.push(newWaiter("b"))
	for _, identity := range []string{"b", "c"} {
		w := newWaiter(identity)
		q.pushFront(w)
		if q.pop() != w {
			t.Errorf("%s is not next", identity)
		}
	}
	if q.size != 2 {
		t.Errorf("size %d", q.size)
	}
}

func TestConfigSaysAllFaults(t *testing.T) {
	err := (&Config{Queue: -1}).check()
	for _, name := range []string{"workers", "queue is -1", "queue timeout", "worker max executions", "worker max age", "spawn timeout", "heartbeat timeout", "largest messageBytes", "largest cpuMs", "default logLines", "launcher"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q is not in %v", name, err)
		}
	}
	c := Defaults()
	c.Launcher = &inside{}
	if err := c.check(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	if p, err := New(Config{}); err == nil || p != nil {
		t.Error("New took an empty config")
	}
}

// TestM9WrongUnit: a limit in the wrong unit is refused, and the right one named.
func TestM9WrongUnit(t *testing.T) {
	c := Defaults()
	c.Launcher = &inside{}
	c.MaxLimits.HeapMiB = 134217728
	if err := c.check(); err == nil || !strings.Contains(err.Error(), "heapMiB is 134217728 MiB") {
		t.Errorf("got %v", err)
	}
	c = Defaults()
	c.Launcher = &inside{}
	c.Limits.CPUMs = c.MaxLimits.CPUMs + 1
	if err := c.check(); err == nil {
		t.Error("a default over the maximum passed")
	}
}

func TestEffectiveLimits(t *testing.T) {
	c := Defaults()
	got := c.effective(protocol.Limits{CPUMs: 1, HeapMiB: math.MaxInt64})
	want := c.Limits
	want.CPUMs, want.HeapMiB = 1, c.MaxLimits.HeapMiB
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAutopsy(t *testing.T) {
	cancelled := &verdict{typ: protocol.Cancelled, message: "why"}
	word := func(typ protocol.Type) *worker.LastWord { return &worker.LastWord{Type: string(typ), Detail: "detail"} }
	cases := []struct {
		name      string
		word      *worker.LastWord
		exit      ExitState
		cancelled *verdict
		want      string
	}{
		{"segmentation fault", nil, ExitState{Signal: syscall.SIGSEGV}, nil, "worker_crashed signal:SIGSEGV"},
		{"abort", nil, ExitState{Signal: syscall.SIGABRT}, nil, "worker_crashed signal:SIGABRT"},
		{"unknown signal", nil, ExitState{Signal: 63}, nil, "worker_crashed signal:63"},
		{"status of a signalled process counts for nothing", nil, ExitState{Signal: syscall.SIGBUS, Code: worker.ExitCPU}, nil, "worker_crashed signal:SIGBUS"},
		{"cancelled", nil, ExitState{Code: worker.ExitCancelled}, cancelled, "cancelled "},
		{"cancelled by word", word(protocol.Cancelled), ExitState{Code: 1}, cancelled, "cancelled "},
		{"cancelled by word, though nobody did", word(protocol.Cancelled), ExitState{Code: 1}, nil, "worker_crashed exit:1"},
		{"word of another kind", word(protocol.Overloaded), ExitState{Code: 1}, nil, "worker_crashed exit:1"},
		{"word that is none", word("nonsense"), ExitState{Code: worker.ExitHeapOOM}, nil, "memory_limit "},
		{"word before status", word(protocol.MemoryLimit), ExitState{Code: worker.ExitFatal}, nil, "memory_limit "},
	}
	for _, c := range cases {
		v := autopsy(c.word, c.exit, Defaults().Limits, c.cancelled)
		if got := fmt.Sprintf("%s %s", v.typ, v.reason); got != c.want || v.message == "" {
			t.Errorf("%s: got %s (%s), want %s", c.name, got, v.message, c.want)
		}
	}
	if cancelled.message != "why" {
		t.Error("a worker changed why it was cancelled")
	}
	limits := Defaults().Limits
	if got, want := autopsy(word(protocol.MemoryLimit), ExitState{}, limits, nil), stopped(protocol.MemoryLimit, limits); *got != *want {
		t.Errorf("the engine's word for memory reached the caller: %q", got.message)
	}
}

func TestToolset(t *testing.T) {
	s := newToolset([]protocol.Provider{
		{Name: "all", Tools: protocol.Tools{All: true}},
		{Name: "unset"},
		{Name: "none", Tools: protocol.Tools{Paths: [][]string{}}},
		{Name: "some", Tools: protocol.Tools{Paths: [][]string{{"a"}, {"b", "c"}, {"d\x01e"}}}},
	})
	cases := []struct {
		provider string
		path     []string
		want     bool
	}{
		{"all", []string{"x"}, true},
		{"all", []string{""}, false},
		{"all", []string{"x", "y"}, false},
		{"all", nil, false},
		{"unset", []string{"x"}, true},
		{"none", []string{"x"}, false},
		{"none", nil, false},
		{"some", []string{"a"}, true},
		{"some", []string{"b", "c"}, true},
		{"some", []string{"b"}, false},
		{"some", []string{"bc"}, false},
		{"some", []string{"d", "e"}, false},
		{"nobody", []string{"a"}, false},
	}
	for _, c := range cases {
		if got := s.has(c.provider, c.path); got != c.want {
			t.Errorf("%s %q: %t", c.provider, c.path, got)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		s, want string
		n       int
	}{{"abc", "abc", 3}, {"abcd", "abc", 3}, {"aéé", "aé", 4}, {"é", "", 1}} {
		if got := Clip(c.s, c.n); got != c.want {
			t.Errorf("Clip(%q, %d) is %q", c.s, c.n, got)
		}
	}
}

// TestProcMeter: the meter sees this process, and sees that another is gone.
func TestProcMeter(t *testing.T) {
	m, err := newProcMeter(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	before, err := m.cpu()
	if err != nil {
		t.Fatal(err)
	}
	after := before
	for begin := time.Now(); err == nil && after-before < 10*time.Millisecond && time.Since(begin) < 20*time.Second; {
		after, err = m.cpu()
	}
	if used := after - before; err != nil || used < 10*time.Millisecond || used > time.Minute {
		t.Errorf("a busy loop used %s, %v", used, err)
	}
	if first, err := m.thread(); err != nil || first <= 0 {
		t.Errorf("the first thread took %s, %v", first, err)
	}
	if rss, err := m.rss(); err != nil || rss < 1<<20 || rss > 1<<40 {
		t.Errorf("rss %d, %v", rss, err)
	}
	if _, err := newProcMeter(1 << 30); err == nil {
		t.Error("no such process, and no error")
	}
}

func TestOverloadHint(t *testing.T) {
	p := &Pool{}
	p.current.Store(&Config{Workers: 2})
	hint := func() int64 { return protocol.AsError(p.overloaded()).RetryAfterMs }
	if got := hint(); got != 50 { // a guess of 100 ms, two workers
		t.Errorf("without measurements %d", got)
	}
	p.service, p.queue.size = average(time.Second), 9
	if got := hint(); got != 5000 {
		t.Errorf("ten of one second on two workers: %d", got)
	}
	p.service = average(time.Hour)
	if got := hint(); got != 60_000 {
		t.Errorf("bound: %d", got)
	}
	var a average
	for range 100 {
		a.add(time.Second)
	}
	if a != average(time.Second) {
		t.Errorf("average of the same is %s", time.Duration(a))
	}
}
