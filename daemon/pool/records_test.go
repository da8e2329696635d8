package pool

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// only returns the one execution of that id.
func (b *bench) only(id string) ExecutionInfo {
	b.t.Helper()
	list := b.Execution(id)
	if len(list) != 1 {
		b.t.Fatalf("%d executions are called %q", len(list), id)
	}
	return list[0]
}

// TestExecutionsAreListed: an execution is there from its arrival until long after its end, with what it is doing.
func TestExecutionsAreListed(t *testing.T) {
	b := insideBench(t, testConfig())
	r := script("log one", "calls tools.echo [1]", "wait")
	r.Execution, r.Session, r.Name = "mine", "s1", "task.js"
	runs := b.start("a", r)
	runs.isRunning(t)
	waits := b.start("b", script("return 1"))
	waits.isQueued(t)
	for len(b.only("mine").Logs) == 0 || b.only("mine").Stats.ToolCalls == 0 {
		time.Sleep(time.Millisecond) // what the worker does has no event
	}
	got := b.only("mine")
	if got.Phase != Running || got.Identity != "a" || got.Session != "s1" || got.Name != "task.js" || got.Stats.Worker != "worker-1" ||
		got.Limits.ToolCalls != 20 || got.Logs[0].Text != "one" || got.Began.Before(got.Came) || !got.Over.IsZero() {
		t.Errorf("running: %+v", got)
	}
	list := b.Executions()
	if len(list) != 2 || list[0].ID != got.ID || list[1].Phase != Queued || list[1].Identity != "b" || list[0].Logs != nil {
		t.Fatalf("list: %+v", list)
	}
	runs.end()
	<-waits.done
	got = b.only(got.ID)
	if got.Phase != Ended || got.Type != protocol.Cancelled || got.Message == "" || got.Layer != LayerEngine || got.Stats.TotalMs <= 0 ||
		len(got.Logs) != 1 || got.Over.IsZero() || got.Stats.ToolCalls != 1 {
		t.Errorf("ended: %+v", got)
	}
	// The last to end is the first, which is either: the worker took the second before the first was written down.
	list = b.Executions()
	if len(list) != 2 || list[0].Over.Before(list[1].Over) || !slices.ContainsFunc(list, func(x ExecutionInfo) bool { return x.Identity == "b" && x.Type == "" }) {
		t.Errorf("list: %+v", list)
	}
}

// TestWhatIsRememberedIsBounded: executions that ended well do not push out those that did not, and neither grows.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	b := insideBench(t, testConfig())
	bad := script(`throw {"type":"exception","message":"no"}`)
	bad.Execution = "bad"
	b.run(bad)
	for range keptFine + 10 {
		b.run(script("return 1"))
	}
	if got := b.only("bad"); got.Type != protocol.Exception {
		t.Errorf("%+v", got)
	}
	if n := len(b.Executions()); n != keptFine+1 {
		t.Errorf("%d executions are remembered", n)
	}
	for range keptBad + 10 {
		b.run(script(`throw {"type":"exception","message":"no"}`))
	}
	if n := len(b.Executions()); n != keptFine+keptBad {
		t.Errorf("%d executions are remembered", n)
	}
	if len(b.Execution("bad")) != 0 {
		t.Error("the oldest is still there")
	}
}

// TestKeptTextIsBounded: of console lines and messages the last and the first are kept, within bounds.
func TestKeptTextIsBounded(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for _, tc := range []struct {
		name  string
		lines []string
		want  int
	}{
		{"none", nil, 0},
		{"few", []string{"a", "b"}, 2},
		{"many", strings.Split(strings.Repeat("a ", 50), " ")[:50], keptLines},
		{"long ones", []string{long, long, "end"}, 2},
		{"one that is too long", []string{strings.Repeat("é", keptLineBytes)}, 1},
	} {
		var lines []protocol.Log
		for _, text := range tc.lines {
			lines = append(lines, protocol.Log{Text: text})
		}
		kept, n := lastLines(lines), 0
		for _, l := range kept {
			n += len(l.Text)
		}
		if len(kept) != tc.want || n > keptLineBytes {
			t.Errorf("%s: %d lines of %d bytes are kept", tc.name, len(kept), n)
		}
		if len(kept) > 0 && !strings.HasPrefix(tc.lines[len(tc.lines)-1], kept[len(kept)-1].Text) {
			t.Errorf("%s: the last is not kept", tc.name)
		}
	}
}

// TestOperatorCancels: an execution ends as cancelled with the operator's reason, whether it waits or runs, and its place is free.
func TestOperatorCancels(t *testing.T) {
	b := insideBench(t, testConfig())
	runs := b.start("a", script("wait"))
	runs.isRunning(t)
	waits := b.start("a", script("return 1"))
	waits.isQueued(t)
	list := b.Executions()
	for i, j := range []*job{runs, waits} {
		if !b.CancelExecution(list[1-i].ID, "the operator says so") { // the one that waits first
			t.Error("there is nothing to cancel")
		}
		j = []*job{waits, runs}[i]
		<-j.done
		if j.err != nil {
			t.Fatal(j.err)
		}
		want(t, j.out, protocol.Cancelled, "")
		if j.out.Error.Message != "the operator says so" {
			t.Errorf("message %q", j.out.Error.Message)
		}
	}
	if b.CancelExecution(list[0].ID, "again") || b.CancelExecution("nobody", "x") {
		t.Error("what has ended was cancelled")
	}
	if s := b.Stats(); s.Running != 0 || s.Queued != 0 || s.Totals.Left != 1 {
		t.Errorf("stats %+v", s)
	}
	b.works()
}

// TestOperatorCancelsWhatDoesNotListen: the process of a program that does not end by itself is killed.
func TestOperatorCancelsWhatDoesNotListen(t *testing.T) {
	b := insideBench(t, testConfig())
	runs := b.start("a", script("hang"))
	runs.isRunning(t)
	timed(t, stopGrace, 10*time.Second, func() {
		b.CancelExecution(b.Executions()[0].ID, "enough")
		<-runs.done
	})
	want(t, runs.out, protocol.Cancelled, "")
	b.works()
}

// TestOperatorCancelsAnytime: whenever the order comes, the execution ends once, and nothing is left behind.
func TestOperatorCancelsAnytime(t *testing.T) {
	c := testConfig()
	c.Workers, c.Queue, c.QueuePerIdentity = 2, 100, 100
	b := insideBench(t, c)
	var jobs []*job
	for range 100 {
		jobs = append(jobs, b.start("a", script("wait")))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, j := range jobs {
			<-j.done
		}
	}()
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		default:
			for _, x := range b.Executions() {
				if x.Phase != Ended {
					b.CancelExecution(x.ID, "now")
				}
			}
		}
	}
	for _, j := range jobs {
		if j.err != nil || j.out.Error == nil || j.out.Error.Type != protocol.Cancelled || j.out.Error.Message != "now" {
			t.Fatalf("ended with %+v, %v", j.out, j.err)
		}
	}
	if s := b.Stats(); s.Running != 0 || s.Queued != 0 {
		t.Errorf("stats %+v", s)
	}
	b.works()
}
