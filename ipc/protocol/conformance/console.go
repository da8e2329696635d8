package conformance

import (
	"slices"
	"testing"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

func lines(logs []protocol.Log) (list []string) {
	for _, l := range logs {
		list = append(list, string(l.Level)+" "+l.Text)
	}
	return list
}

func console(t *testing.T, e executor.Executor) {
	talk := "console.debug('a'); console.info('b'); console.log('c', 1, {d: 2}); console.warn('e'); console.error('f'); 1"
	t.Run("levels", func(t *testing.T) {
		o := run(t, e, program(talk))
		want := []string{"debug a", "info b", "log c 1 { d: 2 }", "warn e", "error f"}
		if got := lines(o.Logs); !slices.Equal(got, want) {
			t.Errorf("lines %q, want %q", got, want)
		}
		for i, l := range o.Logs {
			if l.Time < 0 || i > 0 && l.Time < o.Logs[i-1].Time {
				t.Errorf("line %d at %v ms", i, l.Time)
			}
		}
	})
	t.Run("of a program that failed", func(t *testing.T) {
		o := run(t, e, program("console.log('before'); throw new Error('x')"))
		if got := lines(o.Logs); !slices.Equal(got, []string{"log before"}) {
			t.Errorf("lines %q", got)
		}
	})
	t.Run("streamed", func(t *testing.T) {
		var heard []protocol.Log
		r := program("for (let i = 0; i < 50; i++) console.log('line', i); 1")
		r.Logs.Stream = true
		r.OnLog = func(l protocol.Log) { heard = append(heard, l) }
		o := run(t, e, r)
		if !slices.Equal(lines(heard), lines(o.Logs)) || len(heard) != 50 {
			t.Errorf("heard %d lines, the outcome has %d", len(heard), len(o.Logs))
		}
	})
	t.Run("before the tool call that follows", func(t *testing.T) {
		heard := make(chan string, 10)
		r := program("console.log('first'); await tools.echo(1); console.log('second')", using(echo))
		r.Logs.Stream = true
		r.OnLog = func(l protocol.Log) { heard <- l.Text }
		run(t, e, r)
		if first, second := <-heard, <-heard; first != "first" || second != "second" {
			t.Errorf("heard %q and %q", first, second)
		}
	})
	t.Run("bounded", func(t *testing.T) {
		o := run(t, e, program("for (let i = 0; i < 100; i++) console.log('x'.repeat(100)); 1", within(protocol.Limits{LogBytes: 1000})))
		middle := o.Logs[len(o.Logs)/2]
		if middle.Truncated == nil || middle.Level != protocol.LevelWarn || middle.Truncated.Lines != int64(100-(len(o.Logs)-1)) {
			t.Errorf("%d lines, that in the middle is %+v of %+v", len(o.Logs), middle, middle.Truncated)
		}
	})
	t.Run("states", func(t *testing.T) {
		var states []string
		r := program("1")
		r.Execution = "mine"
		r.OnState = func(s protocol.State) { states = append(states, s.Execution+" "+s.State) }
		run(t, e, r)
		if n := len(states); n == 0 || states[n-1] != "mine running" {
			t.Errorf("states %q", states)
		}
	})
}
