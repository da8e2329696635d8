package conformance

import (
	"errors"
	"testing"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

func limits(t *testing.T, e executor.Executor) {
	t.Run("in force", func(t *testing.T) {
		asked := protocol.Limits{CPUMs: 1234, WallMs: 2345, TotalMs: 3456, HeapMiB: 20, BufferMiB: 10, ResultBytes: 5000, LogBytes: 600, LogLines: 70, ToolCalls: 8, Fetches: 9, FetchBytes: 10_000}
		o := run(t, e, program("1", within(asked)))
		if o.Stats.Limits == nil || *o.Stats.Limits != asked {
			t.Errorf("in force is %+v", o.Stats.Limits)
		}
	})
	t.Run("defaults", func(t *testing.T) {
		l := run(t, e, program("1")).Stats.Limits
		if l == nil || l.CPUMs <= 0 || l.WallMs <= 0 || l.TotalMs <= 0 || l.HeapMiB <= 0 || l.BufferMiB <= 0 || l.ResultBytes <= 0 || l.LogBytes <= 0 || l.LogLines <= 0 || l.ToolCalls <= 0 || l.Fetches <= 0 || l.FetchBytes <= 0 {
			t.Errorf("in force is %+v", l)
		}
	})
	t.Run("lowered to the maximum", func(t *testing.T) {
		const asked = 1 << 40
		o := run(t, e, program("1", within(protocol.Limits{CPUMs: asked, HeapMiB: asked, ToolCalls: asked})))
		if l := o.Stats.Limits; l == nil || l.CPUMs >= asked || l.HeapMiB >= asked || l.ToolCalls >= asked || l.CPUMs <= 0 {
			t.Errorf("in force is %+v", l)
		}
	})
	t.Run("stats", func(t *testing.T) {
		s := run(t, e, program("let n = 0; for (let i = 0; i < 1e6; i++) n += i; await tools.echo(n); await tools.echo(n)", using(echo))).Stats
		if s.ToolCalls != 2 || s.CPUMs <= 0 || s.TotalMs <= 0 || s.WallMs <= 0 || s.PeakHeapBytes <= 0 || s.QueueMs < 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("one run's end does not touch the next", func(t *testing.T) {
		for range 3 {
			o := run(t, e, program("globalThis.left = (globalThis.left ?? 0) + 1; for (;;);", within(protocol.Limits{CPUMs: 50})))
			if !errors.Is(o.Err(), protocol.CPUTimeout) {
				t.Errorf("ended with %v", o.Err())
			}
			wantValue(t, e, program("globalThis.left ?? 'fresh'"), `"fresh"`)
		}
	})
}
