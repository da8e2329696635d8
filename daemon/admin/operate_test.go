package admin

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/daemon/settings"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// holding is a pool with a worker of each kind.
type holding struct{ nothing }

func (holding) Workers() []pool.WorkerInfo {
	return []pool.WorkerInfo{{Name: "idle"}, {Name: "runs"}, {Name: "retains"}, {Name: "is called"}, {Name: "was released"}}
}

func (holding) Executions() []pool.ExecutionInfo {
	on := func(worker string) protocol.Stats { return protocol.Stats{Worker: worker} }
	return []pool.ExecutionInfo{
		{ID: "1", Phase: pool.Running, Stats: on("runs")},
		{ID: "2", Phase: pool.Retained, Stats: on("retains")},
		{ID: "4", Of: "3", Phase: pool.Running, Stats: on("is called")},
		{ID: "3", Phase: pool.Retained, Stats: on("is called")},
		{ID: "6", Of: "5", Phase: pool.Running, Stats: on("was released")}, // an invocation that is left of it
		{ID: "7", Phase: pool.Ended, Stats: on("idle")},
		{ID: "8", Phase: pool.Queued},
	}
}

// The execution of a worker is the one that it runs or holds, never an invocation.
func TestExecutionOfAWorker(t *testing.T) {
	want := map[string]string{"idle": "", "runs": "1", "retains": "2", "is called": "3", "was released": "5"}
	for _, w := range (&App{cfg: Config{Pool: holding{}}}).listWorkers() {
		if w.Execution != want[w.Name] {
			t.Errorf("worker %q has %q", w.Name, w.Execution)
		}
	}
}

func TestStatusSaysWhatTheServiceDoes(t *testing.T) {
	b := start(t, nil)
	ended := b.run("mine", "for (;;);")
	s, err := b.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.State.Name != "ready" || !s.State.Ready || s.Version != "test" || s.Workers.Running != 1 || s.Queue.Running != 1 || s.Sessions != 1 ||
		len(s.Identities) != 1 || !slices.Contains(s.Isolation, "process") || s.Events.Last < 2 || s.Totals.WorkersStarted != 1 {
		t.Errorf("%+v", s)
	}
	var list WorkerList
	for range 500 { // the caller is told of the run just before it is the worker's
		if list, err = b.Workers(t.Context()); err != nil || len(list.Workers) != 1 || list.Workers[0].Execution != "" && list.Workers[0].RSSBytes != 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil || len(list.Workers) != 1 || list.Workers[0].State != "running" || list.Workers[0].Execution == "" || list.Workers[0].RSSBytes == 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := b.Cancel(t.Context(), "mine", Cancel{}); err != nil {
		t.Fatal(err)
	}
	<-ended
	if s, err = b.Status(t.Context()); err != nil || s.Totals.Executions != 1 || s.Totals.Outcomes["cancelled"] != 1 || s.Workers.Running != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestFindWhyAnExecutionFailed: from the list to the reason, the figures and the last lines.
func TestFindWhyAnExecutionFailed(t *testing.T) {
	b := start(t, nil)
	<-b.run("good", "1")
	<-b.run("bad", "console.log('about to fail'); await 0; null.x")
	list, err := b.Executions(t.Context(), ExecutionFilter{Outcome: []string{"failed"}})
	if err != nil || len(list.Executions) != 1 || list.Executions[0].CallerID != "bad" || list.Executions[0].Logs != nil {
		t.Fatalf("%+v, %v", list, err)
	}
	x, err := b.Execution(t.Context(), list.Executions[0].ID)
	if err != nil || x.Outcome != "exception" || !strings.Contains(x.Message, "TypeError") || x.Name != "task.js" || x.EndedBy != "engine" ||
		len(x.Logs) != 1 || x.Logs[0].Text != "about to fail" || x.Limits.HeapMiB == 0 || x.TotalMs <= 0 || x.Session == "" {
		t.Errorf("%+v, %v", x, err)
	}
	for name, f := range map[string]ExecutionFilter{
		"good":     {Outcome: []string{OK}, State: []string{"ended"}},
		"good,bad": {Session: x.Session, Identity: x.Identity, Worker: x.Worker},
		"bad":      {Limit: 1},
		"":         {Session: "another"},
	} {
		list, err := b.Executions(t.Context(), f)
		var got []string
		for _, x := range list.Executions {
			got = append(got, x.CallerID)
		}
		slices.Sort(got)
		want := words(name)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) || f.Limit > 0 && list.Omitted != 1 {
			t.Errorf("%+v finds %q and %d more, %v", f, got, list.Omitted, err)
		}
	}
}

func TestCancelNamesTheOperator(t *testing.T) {
	b := start(t, nil)
	ended := b.run("mine", "for (;;);")
	x, err := b.Cancel(t.Context(), "mine", Cancel{Reason: "it burns the house down"})
	if err != nil || x.CallerID != "mine" {
		t.Fatalf("%+v, %v", x, err)
	}
	o := <-ended
	if o.Error == nil || o.Error.Type != protocol.Cancelled || !strings.HasPrefix(o.Error.Message, "cancelled by the operator ") ||
		!strings.Contains(o.Error.Message, "uid ") || !strings.HasSuffix(o.Error.Message, ": it burns the house down") {
		t.Errorf("%+v", o.Error)
	}
	if _, err := b.Cancel(t.Context(), x.ID, Cancel{}); !errors.Is(err, protocol.InvalidRequest) {
		t.Errorf("again: %v", err)
	}
}

// Two callers may use the same id: the operator is asked which he means.
func TestCallersIDsMayBeAmbiguous(t *testing.T) {
	b := start(t, nil)
	<-b.run("same", "1")
	other, _, err := b.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Execute(t.Context(), executor.Request{Execute: protocol.Execute{Execution: "same", Code: "1"}}); err != nil {
		t.Fatal(err)
	}
	_, err = b.Execution(t.Context(), "same")
	if !errors.Is(err, protocol.InvalidRequest) || !strings.Contains(err.Error(), b.pool.Executions()[0].ID) {
		t.Errorf("%v", err)
	}
}

func TestMaintenanceAndLogLevelAndReload(t *testing.T) {
	b := start(t, nil)
	m, err := b.EnterMaintenance(t.Context(), EnterMaintenance{Reason: "update", Persistent: true})
	if err != nil || !m.Active || m.Reason != "update" || !strings.Contains(m.Who, "uid ") || !m.Persistent || m.Since == nil {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err = b.LeaveMaintenance(t.Context()); err != nil || m.Active {
		t.Errorf("%+v, %v", m, err)
	}
	l, err := b.SetLogLevel(t.Context(), LogLevel{"warn"})
	if err != nil || l.Level != "WARN" || b.level.Level() != slog.LevelWarn {
		t.Errorf("%+v, %v", l, err)
	}
	r, err := b.Reload(t.Context())
	if err != nil || len(r.Applied) != 1 || r.NeedRestart == nil {
		t.Errorf("%+v, %v", r, err)
	}
	b.service.reload = errors.New("the file is bad")
	if _, err = b.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "the file is bad") {
		t.Errorf("%v", err)
	}
	list, err := b.Settings(t.Context())
	if err != nil || !slices.ContainsFunc(list.Settings, func(s settings.Setting) bool { return s.Name == "workers" }) {
		t.Errorf("%+v, %v", list, err)
	}
}

// step returns one of a check.
func step(t *testing.T, c Check, name string) CheckStep {
	t.Helper()
	at := slices.IndexFunc(c.Steps, func(s CheckStep) bool { return s.Name == name })
	if at < 0 {
		t.Fatalf("there is no step %q in %+v", name, c)
	}
	return c.Steps[at]
}

func TestCheckOfAGoodService(t *testing.T) {
	b := start(t, nil)
	c, err := b.Check(t.Context())
	if err != nil || !c.OK || len(c.Steps) != len(trials)+2 || !strings.HasPrefix(c.Address, "unix:") {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, s := range c.Steps {
		if !s.OK || s.Detail == "" {
			t.Errorf("%+v", s)
		}
	}
	if s := step(t, c, "isolation"); !strings.Contains(s.Detail, "process") {
		t.Errorf("%+v", s)
	}
}

// answering is an executor that gives every program the same end.
type answering struct {
	value protocol.Value
	err   error
}

func (a answering) Execute(context.Context, executor.Request) (*protocol.Outcome, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &protocol.Outcome{Status: protocol.StatusOK, Value: a.value}, nil
}

func (answering) Close() error { return nil }

// TestCheckSaysWhatIsWrong: in words, and what to do about it.
func TestCheckSaysWhatIsWrong(t *testing.T) {
	var now executor.Executor
	var refuses error
	b := start(t, func(_ *bench, c *Config) {
		c.Dial = func(context.Context) (executor.Executor, string, error) { return now, "somewhere", refuses }
	})
	for _, c := range []struct {
		name    string
		e       executor.Executor
		refuses error
		step    string
		want    string
	}{
		{"nobody answers", nil, errors.New("connection refused"), "connect", "connection refused"},
		{"maintenance", answering{err: protocol.Errorf(protocol.Maintenance, "update")}, nil, "value", "leave maintenance"},
		{"busy", answering{err: protocol.Errorf(protocol.Overloaded, "full")}, nil, "value", "--workers"},
		{"a wrong value", answering{value: protocol.Value("43")}, nil, "value", "the program returned 43, not 42"},
		{"a tool that is not asked", answering{value: protocol.Value("5")}, nil, "tool call", "called 0 times"},
		{"a limit that does not hold", answering{value: protocol.Value("5")}, nil, "CPU limit", "has to be stopped with cpu_timeout returned 5"},
		{"another end", answering{err: protocol.Errorf(protocol.WorkerCrashed, "it died")}, nil, "memory limit", "the worker's last words"},
		{"a network", answering{value: protocol.Value(`"reached"`)}, nil, "no network", "reached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, refuses = c.e, c.refuses
			found, err := b.Check(t.Context())
			if err != nil || found.OK {
				t.Fatalf("%+v, %v", found, err)
			}
			if s := step(t, found, c.step); s.OK || !strings.Contains(s.Detail, c.want) {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestOneCheckAtATime(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	b := start(t, func(b *bench, c *Config) {
		c.Dial = func(context.Context) (executor.Executor, string, error) {
			close(begun)
			<-release
			return nil, "", errors.New("no")
		}
	})
	first := make(chan error, 1)
	go func() { _, err := b.Check(context.Background()); first <- err }()
	<-begun
	if _, err := b.Check(t.Context()); !errors.Is(err, protocol.Overloaded) {
		t.Errorf("%v", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestClientErrors(t *testing.T) {
	for _, bad := range []string{"", "tcp://127.0.0.1:1", "unix:relative", "/path"} {
		if _, err := NewClient(bad); err == nil {
			t.Errorf("%q is an address", bad)
		}
	}
	c, err := NewClient("unix:/nowhere/none")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := c.Status(ctx); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v", err)
	}
}
