package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/executord/executord/daemon/admin"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// TestAnyInterleaving drives a real service over real connections through whatever a model of its callers comes up with: they
// come and go, run programs whose tools answer, answer late, wrongly, or not at all, call what is retained, cancel; connections
// are cut, workers killed, the service is put into maintenance and reloaded. Each call has exactly one outcome, of a kind that
// what happened allows, and afterwards nothing is left of any.
func TestAnyInterleaving(t *testing.T) {
	s := startThree(t, "--retained-executions", "3", "--retained-per-caller", "3", "--resume-window", "2s") // who leaves while cut off is waited for
	operator := s.operator()
	s.hasRoom()
	if _, err := operator.Status(t.Context()); err != nil { // its connection stays
		t.Fatal(err)
	}
	before := s.rest()
	rounds, ends := 0, map[string]int{}
	(&crowd{service: s, rt: t, operator: operator, ends: ends}).undisturbed()
	s.settle(before)
	rapid.Check(t, func(rt *rapid.T) {
		if rounds++; testing.Short() && rounds > 5 || rounds > 30 { // rapid's number is made for what takes no time
			return
		}
		c := &crowd{service: s, rt: rt, operator: operator, ends: ends}
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{
			"come", "come", "run", "run", "run", "run", "keep", "keep", "invoke", "invoke", "invoke", "invoke", "release", "cancel", "pause", "pause", "cut", "kill", "leave", "maintain", "reload", "pause",
		}), 10, 60).Draw(rt, "steps")
		numbers := rapid.SliceOfN(rapid.IntRange(0, 1<<20), len(steps), len(steps)).Draw(rt, "numbers") // what draws may end the round
		for i, step := range steps {
			c.step(step, numbers[i])
		}
		c.end()
		s.settle(before)
		if st := c.status(); st.Queue.Waiting+st.Queue.Running+st.Retained+st.Workers.Running+st.Workers.Retained+len(st.Identities) != 0 {
			rt.Errorf("after all has ended the service counts %+v, %+v, %d retained, %+v", st.Queue, st.Workers, st.Retained, st.Identities)
		}
	})
	s.hasRoom()
	s.settle(before)
	t.Logf("ends: %v", ends)
}

// crowd is the callers of a service, and what they have under way.
type crowd struct {
	service  *service
	rt       rapid.TB
	operator *admin.Client
	lines    []*line
	all      sync.WaitGroup
	closed   bool // the service is in maintenance

	killed   atomic.Bool // a worker was, at any time
	shut     atomic.Bool // the service was in maintenance, at any time
	left     atomic.Bool // a caller has left
	mu       sync.Mutex
	ends     map[string]int // by kind and type
	under    []*errand
	handles  []*executor.Handle
	failures []string
}

// errand is one call of a caller's.
type errand struct {
	kind      string
	cancel    context.CancelFunc
	cancelled atomic.Bool
	line      *line
}

// programs by kind, and what they give when nothing comes between.
var errands = map[string]struct{ code, want string }{
	"value": {"console.log('x'); 6 * 7", "42"},
	"tool":  {"(await Promise.all([tools.echo(1), tools.echo(2)])).length", "2"},
	"late":  {"await Promise.race([tools.late(), new Promise(r => setTimeout(r, 5))]); 1", "1"},
	"wrong": {"await tools.wrong().then(() => 0, () => 1)", "1"},
	"never": {"await Promise.race([tools.never(), new Promise(r => setTimeout(r, 40))]); 1", "1"},
	"throw": {"throw new Error('mine')", ""},
	"spin":  {"for (;;);", ""},
	"keep":  {"let n = 0; return { up: () => ++n, ask: (x) => tools.echo(x), pages: (async function* () { for (;;) yield n })(), stuck: () => { for (;;); } }", ""},
}

// natural are the types in which errands end by themselves.
var natural = map[string]protocol.Type{"throw": protocol.Exception, "spin": protocol.CPUTimeout}

func tools(context.Context, []protocol.Value) (protocol.Value, error) {
	return protocol.Value("1"), nil
}

// host answers the tools of every errand.
func host(r *executor.Request) {
	r.Provide(executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
		"echo": tools,
		"late": func(context.Context, []protocol.Value) (protocol.Value, error) {
			time.Sleep(10 * time.Millisecond)
			return nil, nil
		},
		"wrong": func(context.Context, []protocol.Value) (protocol.Value, error) { return protocol.Value("{"), nil },
		"never": func(ctx context.Context, _ []protocol.Value) (protocol.Value, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}})
}

func (c *crowd) step(step string, n int) {
	switch step {
	case "come":
		if len(c.lines) < 4 && !c.closed {
			w := c.service.lay()
			c.lines = append(c.lines, &line{w, w.dial()})
		}
	case "run":
		kinds := []string{"value", "tool", "late", "wrong", "never", "throw", "spin"}
		c.run(kinds[n%len(kinds)], n)
	case "keep":
		c.run("keep", n)
		within(100*time.Millisecond, func() bool { // mostly there is something to call then
			c.mu.Lock()
			defer c.mu.Unlock()
			return !slices.ContainsFunc(c.under, func(e *errand) bool { return e.kind == "keep" })
		})
	case "invoke", "release":
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.handles) == 0 {
			return
		}
		h := c.handles[n%len(c.handles)]
		if step == "release" {
			h.Release()
			return
		}
		c.invoke(h, n)
	case "cancel":
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.under) > 0 {
			e := c.under[n%len(c.under)]
			e.cancelled.Store(true)
			e.cancel()
		}
	case "cut":
		if len(c.lines) > 0 {
			c.lines[n%len(c.lines)].cut()
		}
	case "kill":
		if workers := c.service.workers(); len(workers) > 0 {
			c.killed.Store(true)
			_ = syscall.Kill(workers[n%len(workers)], syscall.SIGKILL)
		}
	case "leave":
		if len(c.lines) > 0 {
			l := c.lines[n%len(c.lines)]
			c.left.Store(true)
			c.lines = slices.DeleteFunc(c.lines, func(o *line) bool { return o == l })
			c.mu.Lock()
			for _, e := range c.under {
				if e.line == l {
					e.cancelled.Store(true)
				}
			}
			c.mu.Unlock()
			l.close()
		}
	case "maintain":
		c.maintain(!c.closed)
	case "reload":
		_, _ = c.operator.Reload(c.service.tb.Context())
	case "pause":
		time.Sleep(time.Duration(n%30) * time.Millisecond)
	}
}

func (c *crowd) maintain(on bool) {
	var err error
	if c.closed = on; on {
		c.shut.Store(true)
		_, err = c.operator.EnterMaintenance(c.service.tb.Context(), admin.EnterMaintenance{Reason: "the model wants it"})
	} else {
		_, err = c.operator.LeaveMaintenance(c.service.tb.Context())
	}
	if err != nil {
		c.rt.Fatal(err)
	}
}

// begin has a caller do something on a goroutine of its own.
func (c *crowd) begin(kind string, l *line, do func(context.Context) (*protocol.Outcome, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	e := &errand{kind: kind, cancel: cancel, line: l}
	c.under = append(c.under, e)
	c.all.Go(func() {
		defer cancel()
		o, err := do(ctx)
		if err == nil {
			err = o.Err()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.under = slices.DeleteFunc(c.under, func(other *errand) bool { return other == e })
		end := "ok"
		if err != nil {
			end = string(protocol.AsError(err).Type)
		}
		c.ends[kind+" "+end]++
		switch fault := c.judge(e, err); {
		case fault != "":
			c.failures = append(c.failures, fault)
		case err == nil && kind == "keep" && o.Retained != nil:
			list, err := executor.NewHandles(l.client, executor.Request{}).In(o.Value)
			if err != nil || len(list) != 4 {
				c.failures = append(c.failures, fmt.Sprintf("handles %d in %s: %v", len(list), o.Value, err))
			}
			c.handles = append(c.handles, list...)
		case err == nil && errands[kind].want != "" && string(o.Value) != errands[kind].want:
			c.failures = append(c.failures, fmt.Sprintf("%s gave %s", kind, o.Value))
		}
	})
}

// judge tells what is wrong with how an errand ended. c.mu is held.
func (c *crowd) judge(e *errand, err error) string {
	allowed := []protocol.Type{protocol.Overloaded, protocol.QueueTimeout}
	switch {
	case natural[e.kind] != "":
		if err == nil {
			return e.kind + " gave a value"
		}
		allowed = append(allowed, natural[e.kind])
	case e.kind == "keep":
		allowed = append(allowed, protocol.SessionLimit)
	case e.kind == "invoke":
		// Another call may have been stopped, and the retained execution with it.
		allowed = append(allowed, protocol.HandleUnknown, protocol.Cancelled, protocol.CPUTimeout, protocol.WallTimeout, protocol.Exception)
		if c.left.Load() {
			allowed = append(allowed, protocol.Draining)
		}
	}
	if e.kind == "spin" { // on a machine with much else to do
		allowed = append(allowed, protocol.WallTimeout)
	}
	if e.cancelled.Load() {
		allowed = append(allowed, protocol.Cancelled, protocol.Draining, protocol.Internal)
	}
	if c.killed.Load() {
		allowed = append(allowed, protocol.WorkerCrashed)
	}
	if c.shut.Load() {
		allowed = append(allowed, protocol.Maintenance)
	}
	if err == nil || slices.ContainsFunc(allowed, func(t protocol.Type) bool { return errors.Is(err, t) }) {
		return ""
	}
	return fmt.Sprintf("%s ended with %v", e.kind, err)
}

func (c *crowd) run(kind string, n int) {
	if len(c.lines) == 0 {
		return
	}
	l := c.lines[n%len(c.lines)]
	r := program(errands[kind].code)
	r.Limits = protocol.Limits{CPUMs: 5000}
	switch kind {
	case "spin":
		r.Limits.CPUMs = 50
	case "keep":
		r.Retain = &protocol.Retain{TTLMs: 30_000}
	}
	host(&r)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begin(kind, l, func(ctx context.Context) (*protocol.Outcome, error) { return l.client.Execute(ctx, r) })
}

// invoke calls a handle. c.mu is held.
func (c *crowd) invoke(h *executor.Handle, n int) {
	i := protocol.HandleInvoke{Args: []protocol.Value{protocol.Value("1")}, Limits: protocol.Limits{CPUMs: 50 + int64(n%2)*450}}
	if n%5 == 0 {
		i.Method = protocol.HandleNext
	}
	c.begin("invoke", nil, func(ctx context.Context) (*protocol.Outcome, error) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		return h.Invoke(ctx, i)
	})
}

// undisturbed has each kind of errand end as it does by itself, so that no round of chance is about nothing.
func (c *crowd) undisturbed() {
	c.step("come", 0)
	kinds := append(slices.Sorted(maps.Keys(errands)), "invoke")
	for _, kind := range kinds {
		if kind != "invoke" {
			c.run(kind, 0)
		} else {
			c.mu.Lock()
			c.invoke(c.handles[0], 1)
			c.mu.Unlock()
		}
		c.all.Wait()
		if want := kind + " " + cmp.Or(string(natural[kind]), "ok"); c.ends[want] != 1 {
			c.rt.Fatalf("no %s: %v, %v", want, c.ends, c.failures)
		}
	}
	c.end()
}

// end waits until everything has ended by itself, and everybody has gone.
func (c *crowd) end() {
	if c.closed {
		c.maintain(false)
	}
	done := make(chan struct{})
	go func() {
		c.all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(50 * time.Second):
		c.rt.Fatal("not everything has ended")
	}
	for _, l := range c.lines {
		l.close()
		c.failures = append(c.failures, l.offences...)
	}
	for _, failure := range c.failures {
		c.rt.Error(failure)
	}
}

func (c *crowd) status() admin.Status {
	st, err := c.operator.Status(c.service.tb.Context())
	if err != nil {
		c.rt.Fatal(err)
	}
	return st
}
