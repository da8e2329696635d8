package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

// TestBadEndingsAreTypedPromptAndKeepTheLogs runs what must not hurt anyone. Each ends within its limit and half a
// second in its own type, with the line that was printed before, and the next program runs.
func TestBadEndingsAreTypedPromptAndKeepTheLogs(t *testing.T) {
	c := start(t, testbin.FaultyWorker(t), "--workers", "2").dial()
	defer c.Close()
	limits := protocol.Limits{CPUMs: 700, WallMs: 1000, TotalMs: 1500, HeapMiB: 64, BufferMiB: 64}
	for _, x := range []struct {
		name, code string
		want       protocol.Type
		reason     string
		limit      time.Duration
	}{
		{"loop", "for(;;);", protocol.CPUTimeout, "", 700 * time.Millisecond},
		{"allocation loop", "let a; for(;;) a=new Array(1000).fill(1)", protocol.CPUTimeout, "", 700 * time.Millisecond},
		{"array bomb", "const a = []; for(;;) a.push(new Array(1e5).fill(a.length))", protocol.MemoryLimit, "", 8 * time.Second},
		{"buffer bomb", "const a = []; for(;;) a.push(new ArrayBuffer(1<<20))", protocol.MemoryLimit, "", 8 * time.Second},
		{"never", "await new Promise(()=>{})", protocol.Deadlock, "", 0},
		{"sleep", "await new Promise(r => setTimeout(r, 1e6))", protocol.WallTimeout, "", time.Second},
		{"tool that never answers", "await tools.never()", protocol.TotalTimeout, "", 1500 * time.Millisecond},
		{"builtin that cannot be stopped", "[].indexOf.call({length: 2**53-1}, 1)", protocol.CPUTimeout, "", 700 * time.Millisecond},
		{"allocation that cannot be undone", "[...Array(2**28).keys()]", protocol.MemoryLimit, "", 8 * time.Second},
		{"abort", "console.log('fault:abort')", protocol.WorkerCrashed, "signal:SIGABRT", 0},
		{"segmentation fault", "console.log('fault:segv')", protocol.WorkerCrashed, "signal:SIGSEGV", 0},
		{"exit", "console.log('fault:exit')", protocol.WorkerCrashed, "exit:3", 0},
		{"native loop", "console.log('fault:spin')", protocol.CPUTimeout, "", 700 * time.Millisecond},
		{"native allocation", "console.log('fault:fill')", protocol.MemoryLimit, "", 8 * time.Second},
		{"broken frames", "console.log('fault:garbage')", protocol.WorkerCrashed, "protocol", 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := program("console.log('before');" + x.code)
			r.Limits = limits
			switch x.want { // on a busy machine CPU time runs slower than the other clocks
			case protocol.MemoryLimit:
				r.Limits.CPUMs, r.Limits.WallMs, r.Limits.TotalMs = 8000, 9000, 10000
			case protocol.CPUTimeout:
				r.Limits.WallMs, r.Limits.TotalMs = 9000, 10000
			}
			r.Provide(executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
				"never": func(ctx context.Context, _ []protocol.Value) (protocol.Value, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				},
			}})
			began := time.Now()
			o := run(t, c, r)
			took := time.Since(began)
			if o.Error == nil || o.Error.Type != x.want || (x.reason != "" && o.Error.Reason != x.reason) {
				t.Fatalf("got %s, %v (%+v), want %s %s", o.Value, o.Error, o.Error, x.want, x.reason)
			}
			if len(o.Logs) == 0 || o.Logs[0].Text != "before" {
				t.Errorf("the logs are %v", o.Logs)
			}
			late := took - time.Duration(o.Stats.QueueMs)*time.Millisecond - x.limit // waiting for a replacement is not running
			if x.want == protocol.CPUTimeout {
				late = time.Duration(o.Stats.CPUMs)*time.Millisecond - x.limit
			}
			if late > 500*time.Millisecond {
				t.Errorf("ended %v after its limit", late)
			}
			if next := run(t, c, program("return 1+1")); string(next.Value) != "2" {
				t.Errorf("the next execution gave %s, %v", next.Value, next.Error)
			}
		})
	}
}

// TestSignalsFromOutsideEndThePrograms: somebody kills or stops a worker while its program runs.
func TestSignalsFromOutsideEndThePrograms(t *testing.T) {
	for _, x := range []struct {
		signal syscall.Signal
		want   protocol.Type
		reason string
	}{
		{syscall.SIGKILL, protocol.WorkerCrashed, "signal:SIGKILL"},
		{syscall.SIGSTOP, protocol.WallTimeout, ""},
	} {
		t.Run(x.signal.String(), func(t *testing.T) {
			s := start(t, testbin.Worker(t), "--workers", "1", "--spare-workers", "0")
			c := s.dial()
			defer c.Close()
			r := program("console.log('before'); await tools.strike(); for(;;);")
			r.Limits = protocol.Limits{CPUMs: 9000, WallMs: 1000, TotalMs: 10000}
			r.Provide(executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
				"strike": executor.Func(func() error { return syscall.Kill(s.workers()[0], x.signal) }),
			}})
			o := run(t, c, r)
			if o.Error == nil || o.Error.Type != x.want || o.Error.Reason != x.reason || len(o.Logs) != 1 {
				t.Fatalf("got %s, %+v, logs %v", o.Value, o.Error, o.Logs)
			}
			if next := run(t, c, program("return 1+1")); string(next.Value) != "2" {
				t.Errorf("the next execution gave %s, %v", next.Value, next.Error)
			}
		})
	}
}

// TestManyExecutionsWithParallelCallsLoseAndLeakNothing is 200 programs, 8 at a time, with 50 parallel calls each.
func TestManyExecutionsWithParallelCallsLoseAndLeakNothing(t *testing.T) {
	s := start(t, testbin.Worker(t), "--workers", "2", "--queue", "16")
	c := s.dial()
	defer c.Close()
	batch := func(n int) {
		t.Helper()
		work := make(chan int)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i := range work {
					r := program(fmt.Sprintf("const r = await Promise.all(Array.from({length: 50}, (_, i) => tools.echo(%d + i))); return r.reduce((a, b) => a + b)", i))
					r.Provide(echo())
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					o, err := c.Execute(ctx, r)
					cancel()
					if err != nil || string(o.Value) != fmt.Sprint(50*i+1225) || o.Stats.ToolCalls != 50 {
						t.Errorf("execution %d: %+v, %v", i, o, err)
					}
				}
			})
		}
		for i := range n {
			work <- i
		}
		close(work)
		wg.Wait()
	}
	batch(20) // what is made once is made now
	fds, procs := descriptors(s.cmd.Process.Pid), len(s.workers())
	batch(200)
	if !within(5*time.Second, func() bool { return descriptors(s.cmd.Process.Pid) <= fds && len(s.workers()) <= procs }) {
		t.Errorf("%d descriptors and %d workers, before %d and %d", descriptors(s.cmd.Process.Pid), len(s.workers()), fds, procs)
	}
}

func TestKillingTheServiceLeavesNoWorker(t *testing.T) {
	s := start(t, testbin.Worker(t), "--workers", "3", "--resume-window", "1s") // for which the callers wait
	c := s.dial()
	defer c.Close()
	started := make(chan struct{}, 2)
	ended := make(chan error, 2)
	for _, code := range []string{"console.log(1); for(;;);", "console.log(1); [].indexOf.call({length: 2**53-1}, 1)"} {
		go func() {
			r := program(code)
			r.Limits = protocol.Limits{CPUMs: 20000, WallMs: 20000}
			r.Logs.Stream = true
			r.OnLog = func(protocol.Log) { started <- struct{}{} }
			_, err := c.Execute(context.Background(), r)
			ended <- err
		}()
	}
	<-started
	<-started
	pids := s.workers()
	if len(pids) < 2 {
		t.Fatalf("workers %v", pids)
	}
	s.cmd.Process.Signal(syscall.SIGKILL)
	gone := func() bool {
		for _, pid := range pids {
			if testbin.Alive(pid) {
				return false
			}
		}
		return true
	}
	if !within(2*time.Second, gone) {
		t.Errorf("workers of a dead service live on: %v", pids)
	}
	for range 2 {
		if err := <-ended; !errors.Is(err, protocol.Internal) || !strings.Contains(err.Error(), "lost") {
			t.Errorf("the caller got %v", err)
		}
	}
}

func TestStopDrainsAndExitsWithZero(t *testing.T) {
	s := start(t, testbin.Worker(t))
	c := s.dial()
	defer c.Close()
	r := program("console.log('running'); await new Promise(r => setTimeout(r, 500)); return 'done'")
	r.Logs.Stream = true
	r.OnLog = func(protocol.Log) { s.cmd.Process.Signal(syscall.SIGTERM) }
	if o := run(t, c, r); string(o.Value) != `"done"` {
		t.Errorf("got %s, %v", o.Value, o.Error)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("executord ended with %v", err)
	}
}
