package sandbox_test

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/worker"
)

// proc is a real worker process with the test as its parent.
type proc struct {
	t      *testing.T
	cmd    *exec.Cmd
	conn   *worker.Conn
	stderr bytes.Buffer
	frames chan worker.Message // closed when the channel ends
	status chan int            // exit status, or minus the signal
	nextID uint64
}

var snapshotFile = struct {
	sync.Mutex
	byBinary map[string][]byte
}{byBinary: map[string][]byte{}}

func snapshotOf(t *testing.T, binary string) []byte {
	t.Helper()
	snapshotFile.Lock()
	defer snapshotFile.Unlock()
	if b, ok := snapshotFile.byBinary[binary]; ok {
		return b
	}
	out, err := exec.Command(binary, "-make-snapshot").Output()
	if err != nil {
		t.Fatalf("cannot make a snapshot: %v", err)
	}
	snapshotFile.byBinary[binary] = out
	return out
}

func start(t *testing.T, binary string, snapshot []byte) *proc {
	t.Helper()
	if testing.Short() {
		t.Skip("the worker is built without the race detector")
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer theirs.Close()
	nc, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		t.Fatal(err)
	}
	p := &proc{t: t, frames: make(chan worker.Message, 10000), status: make(chan int, 1)}
	p.cmd = exec.Command(binary, "-channel", "3")
	p.cmd.ExtraFiles = []*os.File{theirs}
	if snapshot != nil {
		blob, err := os.CreateTemp(t.TempDir(), "snapshot")
		if err != nil {
			t.Fatal(err)
		}
		defer blob.Close()
		blob.Write(snapshot)
		p.cmd.Args = append(p.cmd.Args, "-snapshot", "4")
		p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, blob)
	}
	p.cmd.Env = []string{}
	p.cmd.Stderr = &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if p.conn, err = worker.NewConn(nc, worker.Options{Side: worker.Parent}); err != nil {
		t.Fatal(err)
	}
	go p.read()
	go p.wait()
	t.Cleanup(p.kill)
	return p
}

// ready starts a worker and waits until it takes work.
func ready(t *testing.T, binary string) *proc {
	t.Helper()
	p := start(t, binary, snapshotOf(t, binary))
	p.await(func(m worker.Message) bool { _, ok := m.(worker.Ready); return ok })
	return p
}

func (p *proc) read() {
	defer close(p.frames)
	for {
		m, err := p.conn.Receive()
		if err != nil {
			return
		}
		p.frames <- m
	}
}

func (p *proc) wait() {
	p.cmd.Wait()
	ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		p.status <- -int(ws.Signal())
		return
	}
	p.status <- ws.ExitStatus()
}

func (p *proc) kill() {
	p.cmd.Process.Kill()
	p.conn.Close()
}

// exit waits for the end of the process.
func (p *proc) exit() int {
	p.t.Helper()
	select {
	case s := <-p.status:
		return s
	case <-time.After(30 * time.Second):
		p.t.Fatal("the worker did not exit")
		return 0
	}
}

// await returns the first frame that fits; nil when the channel ended.
func (p *proc) await(fits func(worker.Message) bool) worker.Message {
	p.t.Helper()
	deadline := time.After(60 * time.Second)
	for {
		select {
		case m, ok := <-p.frames:
			if !ok {
				return nil
			}
			if fits(m) {
				return m
			}
		case <-deadline:
			p.t.Fatal("the worker sent nothing that fits")
		}
	}
}

// job is a program and what its host answers.
type job struct {
	code      string
	form      protocol.Form
	typed     bool // in TypeScript
	input     string
	modules   []worker.Module
	providers []worker.Provider // in place of tools and listed
	limits    func(*worker.Limits)
	answer    func(worker.ToolCall) (worker.ToolResult, bool) // false: no answer
	started   func(id uint64)
	retain    string // what the ids of handles begin with
	head      string // the answer to requests, which fail where it is empty
}

// end is how a job ended.
type end struct {
	value  string
	err    *protocol.Error
	logs   []string
	calls  int
	result worker.Result
	last   *worker.LastWord // instead of a result
	took   time.Duration
}

func defaultLimits() worker.Limits {
	return worker.Limits{
		CPU: 10 * time.Second, Wall: 30 * time.Second, Total: 40 * time.Second, HeapBytes: 64 << 20, BufferBytes: 64 << 20,
		SlackBytes: 200 << 20, StackBytes: 984 << 10, ResultBytes: 8 << 20, MessageBytes: 8 << 20,
		ValueDepth: protocol.MaxValueDepth, ValueParts: protocol.MaxValueParts, LogBytes: 1 << 20, LogLines: 1000,
		ToolCalls: 1000, CallsInFlight: 1000, Fetches: 10, Timers: 10_000,
	}
}

func (p *proc) run(j job) end {
	p.t.Helper()
	p.nextID++
	l := defaultLimits()
	if j.limits != nil {
		j.limits(&l)
	}
	if j.form == "" {
		j.form = protocol.FormAuto
	}
	language := protocol.JavaScript
	if j.typed {
		language = protocol.TypeScript
	}
	x := worker.Execute{
		ID: p.nextID, Retain: j.retain, Code: j.code, Name: "main.js", Form: string(j.form), Language: string(language), Network: "none",
		Providers: []worker.Provider{{Name: "tools", All: true}, {Name: "listed", Paths: [][]string{{"add"}, {"users", "get"}}}},
		Modules:   j.modules, Limits: l,
	}
	if j.input != "" {
		x.Input = []byte(j.input)
	}
	if j.head != "" {
		x.Network = string(protocol.NetworkHost)
	}
	if j.providers != nil {
		x.Providers = j.providers
	}
	began := time.Now()
	if err := p.conn.Send(x); err != nil {
		p.t.Fatal(err)
	}
	if j.started != nil {
		j.started(x.ID)
	}
	e := p.collect(x.ID, j)
	e.took = time.Since(began)
	return e
}

func (p *proc) collect(id uint64, j job) (e end) {
	p.t.Helper()
	m := p.await(func(m worker.Message) bool {
		switch m := m.(type) {
		case worker.Log:
			e.logs = append(e.logs, m.Level+" "+m.Text)
		case worker.ToolCall:
			e.calls++
			p.answer(m, j)
		case worker.Fetch:
			p.conn.Send(worker.ToolResult{ID: m.ID, Call: m.Call, OK: true, Value: []byte(j.head)})
		case worker.LastWord:
			e.last = &m
		case worker.Result:
			return m.ID == id
		}
		return false
	})
	r, ok := m.(worker.Result)
	if !ok {
		return e
	}
	e.result, e.value = r, string(r.Value)
	if r.Error != nil {
		e.err = &protocol.Error{}
		if err := json.Unmarshal(r.Error, e.err); err != nil {
			p.t.Fatal(err)
		}
	}
	return e
}

func (p *proc) answer(m worker.ToolCall, j job) {
	if j.answer == nil {
		return
	}
	if r, ok := j.answer(m); ok {
		r.ID, r.Call = m.ID, m.Call
		p.conn.Send(r)
	}
}

// echo answers with the first argument.
func echo(c worker.ToolCall) (worker.ToolResult, bool) {
	var args []json.RawMessage
	json.Unmarshal(c.Args, &args)
	if len(args) == 0 {
		return worker.ToolResult{OK: true, Value: []byte(`{"@undefined":true}`)}, true
	}
	return worker.ToolResult{OK: true, Value: args[0]}, true
}

func TestHelloComesFirst(t *testing.T) {
	p := start(t, testbin.Worker(t), snapshotOf(t, testbin.Worker(t)))
	m := <-p.frames
	h, ok := m.(worker.Hello)
	if !ok || h.Version != worker.Version || int(h.PID) != p.cmd.Process.Pid || !strings.HasPrefix(h.Engine, "13.") {
		t.Fatalf("got %#v", m)
	}
}

func TestExecutions(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for _, c := range []struct {
		name string
		job  job
		want string
		logs string
	}{
		{"expression", job{code: "1+1"}, "2", ""},
		{"function", job{code: "async (x) => x * 2", input: "21"}, "42", ""},
		{"script with return", job{code: "const a = await tools.echo(1);\nif (a) return 'yes'; return 'no'", answer: echo}, `"yes"`, ""},
		{"module", job{code: "export default input => input.a", input: `{"a":[1]}`}, "[1]", ""},
		{"console", job{code: "console.log('a', {b: 1}); console.warn('w'); console.error(new Map([[1, 2]]))"}, `{"@undefined":true}`, "log a { b: 1 }|warn w|error Map(1) { 1 => 2 }"},
		{"timers", job{code: "const t = []; setTimeout(() => t.push(2), 5); setTimeout(() => t.push(1), 1); const i = setInterval(() => { if (t.push('i') > 4) clearInterval(i) }, 3); await new Promise(r => setTimeout(r, 60)); return t.filter(x => x !== 'i')"}, "[1,2]", ""},
		{"a timer that is due while the program is busy fires once", job{code: "let n = 0; setTimeout(() => n++, 1); const end = Date.now() + 50; while (Date.now() < end); await new Promise(r => setTimeout(r, 20)); return n"}, "1", ""},
		{"queueMicrotask", job{code: "const o = []; queueMicrotask(() => o.push('m')); setTimeout(() => o.push('t')); o.push('s'); await new Promise(r => setTimeout(r, 5)); return o"}, `["s","m","t"]`, ""},
		{"parallel tool calls", job{code: "return (await Promise.all(Array.from({length: 100}, (_, i) => tools.echo(i)))).reduce((a, b) => a + b)", answer: echo}, "4950", ""},
		{"listed tools", job{code: "return [typeof listed.add, typeof listed.users.get, typeof listed.none, await listed.users.get('x')]", answer: echo}, `["function","function","undefined","x"]`, ""},
		{"modules", job{code: "import { twice } from './lib/twice.js'; import data from 'data' with { type: 'json' }; return twice(data.n)", modules: []worker.Module{
			{Specifier: "lib/twice.js", Type: "module", Source: []byte("import { n } from '../n.js'; export const twice = x => x * n")},
			{Specifier: "./n.js", Type: "module", Source: []byte("export const n = 2")},
			{Specifier: "data", Type: "json", Source: []byte(`{"n": 21}`)},
		}}, "42", ""},
		{"un-awaited rejection is a log line", job{code: "Promise.reject(new Error('loose')); return 1"}, "1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := p.run(c.job)
			if e.err != nil || e.value != c.want {
				t.Fatalf("got %s, %v; want %s; stderr %s", e.value, e.err, c.want, p.stderr.String())
			}
			if c.logs != "" && strings.Join(e.logs, "|") != c.logs {
				t.Fatalf("logs %q", e.logs)
			}
		})
	}
}

func TestProviderWithoutTools(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	e := p.run(job{code: "return [typeof empty, Object.keys(empty)]", providers: []worker.Provider{{Name: "empty"}}})
	if e.value != `["object",[]]` {
		t.Fatal(e.value, e.err)
	}
}

func TestGlobalsDoNotSurvive(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.run(job{code: "globalThis.secret = 1; Array.prototype.x = 1; console.log = 5; return 1"})
	if e := p.run(job{code: "return [typeof secret, [].x, typeof console.log]"}); e.value != `["undefined",{"@undefined":true},"function"]` {
		t.Fatal(e.value, e.err)
	}
}

func TestEndings(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	short := func(l *worker.Limits) {
		l.CPU, l.Wall, l.Total = 300*time.Millisecond, 600*time.Millisecond, 900*time.Millisecond
	}
	busy := func(l *worker.Limits) { l.CPU = 300 * time.Millisecond } // other clocks run faster than CPU time on a busy machine
	for _, c := range []struct {
		name string
		job  job
		want protocol.Type
		pos  string
	}{
		{"throw", job{code: "\n  throw new TypeError('x')"}, protocol.Exception, "2:9"},
		{"throw nothing", job{code: "throw undefined"}, protocol.Exception, ""},
		{"syntax", job{code: "let a = 1;\nlet b = ;"}, protocol.Syntax, "2:9"},
		{"shell text", job{code: "ls -la | grep x"}, protocol.Syntax, "1:15"},
		{"missing module", job{code: "import x from 'nope'; return x"}, protocol.Module, ""},
		{"deadlock", job{code: "await new Promise(() => {})"}, protocol.Deadlock, ""},
		{"loop", job{code: "for(;;);", limits: busy}, protocol.CPUTimeout, ""},
		{"allocation loop", job{code: "let a; for(;;) a=new Array(1000).fill(1)", limits: busy}, protocol.CPUTimeout, ""},
		{"sleep", job{code: "await new Promise(r => setTimeout(r, 5000))", limits: short}, protocol.WallTimeout, ""},
		{"slow tool", job{code: "await tools.never()", limits: short}, protocol.TotalTimeout, ""},
		{"array bomb", job{code: "const a = []; for(;;) a.push(new Array(1000).fill(0))"}, protocol.MemoryLimit, ""},
		{"buffer bomb", job{code: "const a = []; for(;;) a.push(new Uint8Array(1<<20))"}, protocol.MemoryLimit, ""},
		{"function result", job{code: "return () => 1"}, protocol.ResultUnserializable, ""},
		{"large result", job{code: "return 'x'.repeat(1e6)", limits: func(l *worker.Limits) { l.ResultBytes = 1000 }}, protocol.ResultTooLarge, ""},
		{"tool limit", job{code: "for(;;) await tools.echo(1)", limits: func(l *worker.Limits) { l.ToolCalls = 10 }, answer: echo}, protocol.ToolLimit, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.job.code[0] != 'i' && c.want != protocol.Syntax {
				c.job.code = "console.log('before');" + c.job.code
			}
			e := p.run(c.job)
			if e.err == nil || e.err.Type != c.want {
				t.Fatalf("got %s, %v, last word %v; want %s", e.value, e.err, e.last, c.want)
			}
			if strings.HasPrefix(c.job.code, "console") && (len(e.logs) == 0 || e.logs[0] != "log before") {
				t.Fatalf("logs %q", e.logs)
			}
			if got := position(e.err); c.pos != "" && got != c.pos {
				t.Fatalf("at %s, want %s: %v", got, c.pos, e.err)
			}
			if next := p.run(job{code: "1+1"}); next.value != "2" {
				t.Fatalf("the next execution gave %s, %v", next.value, next.err)
			}
		})
	}
}

func position(e *protocol.Error) string {
	if e.Position == nil {
		return ""
	}
	return strings.TrimPrefix(strings.Join([]string{itoa(e.Position.Line), itoa(e.Position.Column)}, ":"), "")
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

func TestCancel(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for _, code := range []string{"console.log('x'); for(;;);", "console.log('x'); await tools.never()", "console.log('x'); await new Promise(r => setTimeout(r, 1e6))"} {
		e := p.run(job{code: code, started: func(id uint64) {
			p.await(func(m worker.Message) bool { _, ok := m.(worker.Log); return ok })
			p.conn.Send(worker.Cancel{ID: id, Reason: "changed my mind"})
		}})
		if e.err == nil || e.err.Type != protocol.Cancelled || e.err.Message != "changed my mind" {
			t.Fatalf("%s: got %s, %v", code, e.value, e.err)
		}
	}
}

// TestCallsOfABusyProgramLeave: those after the first are gathered, but not for as long as the program pleases.
func TestCallsOfABusyProgramLeave(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	e := p.run(job{code: "tools.first(); tools.second(); tools.third(); for(;;);", answer: func(c worker.ToolCall) (worker.ToolResult, bool) {
		if c.Path[0] == "third" {
			p.conn.Send(worker.Cancel{ID: c.ID, Reason: "all calls came"})
		}
		return worker.ToolResult{}, false
	}})
	if e.calls != 3 || e.err == nil || e.err.Type != protocol.Cancelled {
		t.Fatalf("%d calls, got %s, %v", e.calls, e.value, e.err)
	}
}

// TestCancelThatComesWithItsExecution: the two are read at once.
func TestCancelThatComesWithItsExecution(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.cmd.Process.Signal(syscall.SIGSTOP)
	e := p.run(job{code: "await tools.never()", started: func(id uint64) {
		p.conn.Send(worker.Cancel{ID: id, Reason: "changed my mind"})
		p.cmd.Process.Signal(syscall.SIGCONT)
	}})
	if e.err == nil || e.err.Type != protocol.Cancelled || e.err.Message != "changed my mind" {
		t.Fatalf("got %s, %v", e.value, e.err)
	}
}

func TestWhatTheEngineCannotStopEndsTheProcess(t *testing.T) {
	for _, c := range []struct {
		name, code string
		typ        protocol.Type
		status     int
	}{
		{"uninterruptible builtin", "console.log('before'); [].indexOf.call({length: 2**53-1}, 1)", protocol.CPUTimeout, worker.ExitCPU},
		{"one allocation over the slack", "console.log('before'); [...Array(2**28).keys()]", protocol.MemoryLimit, worker.ExitHeapOOM},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := ready(t, testbin.Worker(t))
			e := p.run(job{code: c.code, limits: func(l *worker.Limits) {
				if c.typ == protocol.CPUTimeout {
					l.CPU = 300 * time.Millisecond
				}
			}})
			if e.err != nil && e.err.Type == c.typ {
				return // the engine did stop, in time
			}
			if e.last == nil || e.last.Type != string(c.typ) || e.last.ID != 1 {
				t.Fatalf("got %v, %v, last word %+v, stderr %s", e.value, e.err, e.last, p.stderr.String())
			}
			if s := p.exit(); s != c.status {
				t.Fatalf("exit status %d, want %d", s, c.status)
			}
			if len(e.logs) == 0 || e.logs[0] != "log before" {
				t.Fatalf("logs %q", e.logs)
			}
		})
	}
}

// TestLinesBeforeSuddenDeathAreKept: what was printed leaves before the last word does, and so do calls.
func TestLinesBeforeSuddenDeathAreKept(t *testing.T) {
	for name, death := range map[string]string{
		"the engine's memory":     "'x'.padStart(5e8, 'ab').charCodeAt(3)",
		"memory of ICU, an abort": "const a = [], s = new Intl.Segmenter('en', {granularity: 'word'}), t = 'a b '.repeat(1e6); for (;;) a.push(s.segment(t)[Symbol.iterator]())",
	} {
		t.Run(name, func(t *testing.T) {
			p := ready(t, testbin.Worker(t))
			e := p.run(job{code: "for (let i = 0; i < 900; i++) console.log('line ' + i); tools.a(); tools.b(); tools.c(); " + death})
			if e.last == nil || e.last.Type != string(protocol.MemoryLimit) || e.last.ID != 1 {
				t.Fatalf("got %.100s, %v, last word %+v, stderr %s", e.value, e.err, e.last, p.stderr.String())
			}
			if len(e.logs) != 900 || e.logs[899] != "log line 899" {
				t.Errorf("%d lines of 900", len(e.logs))
			}
			if e.calls != 3 {
				t.Errorf("%d calls of 3", e.calls)
			}
		})
	}
}

// TestWhatIsLongInFreeingEndsTheProcess: the next program waits no longer than for a new process.
func TestWhatIsLongInFreeingEndsTheProcess(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	e := p.run(job{code: "globalThis.a = []; for (let i = 0; i < 2e6; i++) a.push(new Uint8Array(100)); return 'x'.repeat(1 << 20)", limits: func(l *worker.Limits) {
		l.CPU, l.Wall, l.Total, l.HeapBytes, l.BufferBytes = 50*time.Second, time.Minute, time.Minute, 1<<30, 1<<30
	}})
	if len(e.value) != 1<<20+2 {
		t.Fatalf("got %.100s, %v", e.value, e.err)
	}
	if s := p.exit(); s != worker.ExitSpent {
		t.Errorf("exit status %d, want %d", s, worker.ExitSpent)
	}
}

func TestClosedChannelEndsTheProcessAtOnce(t *testing.T) {
	for name, code := range map[string]string{"loop": "for(;;);", "builtin": "[].indexOf.call({length: 2**53-1}, 1)", "waiting": "await tools.never()"} {
		t.Run(name, func(t *testing.T) {
			p := ready(t, testbin.Worker(t))
			p.conn.Send(worker.Execute{ID: 1, Code: "console.log(1);" + code, Name: "main.js", Form: "auto", Language: "javascript", Network: "none", Providers: []worker.Provider{{Name: "tools", All: true}}, Limits: defaultLimits()})
			p.await(func(m worker.Message) bool { _, ok := m.(worker.Log); return ok })
			began := time.Now()
			p.conn.Close()
			if s := p.exit(); s != worker.ExitClosed || time.Since(began) > time.Second {
				t.Fatalf("exit status %d after %v", s, time.Since(began))
			}
		})
	}
}

// TestBuffersOfABusyProgramAreCounted: also of one that has kept its thread for some time when it makes them, and never
// gives V8 a reason to collect.
func TestBuffersOfABusyProgramAreCounted(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	code := `const busy = (ms) => { const begin = Date.now(); while (Date.now() - begin < ms); };
		busy(200);
		const all = []; for (let i = 0; i < 3; i++) all.push(new WebAssembly.Memory({initial: 400, maximum: 4000}));
		busy(5000); return all.length`
	if e := p.run(job{code: code}); e.err == nil || e.err.Type != protocol.MemoryLimit {
		t.Errorf("got %s, %v", e.value, e.err)
	}
}

// TestProgramsGiveWay: a worker's thread has a lower priority than its parent.
func TestProgramsGiveWay(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	if its, err := unix.Getpriority(unix.PRIO_PROCESS, p.cmd.Process.Pid); err != nil || its >= own && own > 1 {
		t.Errorf("20 - nice is %d for the worker and %d here, %v", its, own, err)
	}
}

func TestHeartbeatsGoOnUnderALoop(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.conn.Send(worker.Execute{ID: 7, Code: "for(;;);", Name: "main.js", Form: "auto", Language: "javascript", Network: "none", Limits: defaultLimits()})
	var last worker.Heartbeat
	for range 3 {
		last = p.await(func(m worker.Message) bool { h, ok := m.(worker.Heartbeat); return ok && h.ID == 7 }).(worker.Heartbeat)
	}
	if last.CPU < 20*time.Millisecond || last.Wall < 2*worker.HeartbeatInterval || last.RSSBytes == 0 {
		t.Fatalf("got %+v", last)
	}
}

func TestC3WrongSnapshotStartsPlainly(t *testing.T) {
	good := snapshotOf(t, testbin.Worker(t))
	damaged := append([]byte(nil), good...)
	damaged[len(damaged)/2] ^= 1
	for name, snapshot := range map[string][]byte{"damaged": damaged, "short": good[:50], "not one": []byte(strings.Repeat("x", 1000)), "none": nil} {
		t.Run(name, func(t *testing.T) {
			p := start(t, testbin.Worker(t), snapshot)
			p.await(func(m worker.Message) bool { _, ok := m.(worker.Ready); return ok })
			if e := p.run(job{code: "console.log([1]); return 1+1"}); e.value != "2" || len(e.logs) != 1 {
				t.Fatal(e.value, e.err, e.logs)
			}
		})
	}
}

// TestClonesAreBounded: buffers that are copied end a program as those that it makes do.
func TestClonesAreBounded(t *testing.T) {
	for name, code := range map[string]string{
		"clone":   "const a = []; for(;;) a.push(structuredClone(new ArrayBuffer(1 << 20)))",
		"message": "const { port1, port2 } = new MessageChannel(); port2.onmessage = () => {}; for(;;) port1.postMessage(new ArrayBuffer(1 << 20))",
	} {
		t.Run(name, func(t *testing.T) {
			if e := ready(t, testbin.Worker(t)).run(job{code: code}); e.err == nil || e.err.Type != protocol.MemoryLimit {
				t.Errorf("got %s, %v, last word %v", e.value, e.err, e.last)
			}
		})
	}
}

func TestResizableBuffersAndWasmAreBounded(t *testing.T) {
	for name, code := range map[string]string{
		"resizable": "const a = []; for(;;) { const b = new ArrayBuffer(0, {maxByteLength: 1<<28}); b.resize(1<<28); new Uint8Array(b).fill(1); a.push(b) }",
		"wasm":      "const a = []; for(;;) { const m = new WebAssembly.Memory({initial: 4096}); new Uint8Array(m.buffer).fill(1); a.push(m) }",
	} {
		t.Run(name, func(t *testing.T) {
			p := ready(t, testbin.Worker(t))
			e := p.run(job{code: code})
			if e.value != "" {
				t.Fatalf("got a value: %s", e.value)
			}
			t.Logf("%v, last word %+v", e.err, e.last)
		})
	}
}

// TestSuspendedCallsAreBounded: a program on the stack of a call that WebAssembly may suspend ends as any other, and such
// stacks are memory.
func TestSuspendedCallsAreBounded(t *testing.T) {
	jspi, err := os.ReadFile("runtime/testdata/jspi.js")
	if err != nil {
		t.Fatal(err)
	}
	p := ready(t, testbin.Worker(t))
	for name, c := range map[string]struct {
		code string
		want protocol.Type
	}{
		"loop":      {"await WebAssembly.promising(suspending(() => { for (;;); }).twice)()", protocol.CPUTimeout},
		"waits":     {"await WebAssembly.promising(suspending(() => new Promise(() => {})).twice)()", protocol.Deadlock},
		"heap":      {"await WebAssembly.promising(suspending(async () => { await 0; for (const a = [];;) a.push(new Array(1000).fill(1.5)); }).twice)()", protocol.MemoryLimit},
		"in a tool": {"await WebAssembly.promising(suspending(() => { throw new Error('mine'); }).twice)()", protocol.Exception},
	} {
		t.Run(name, func(t *testing.T) {
			e := p.run(job{code: string(jspi) + c.code, limits: func(l *worker.Limits) {
				if c.want == protocol.CPUTimeout {
					l.CPU = 300 * time.Millisecond
				}
			}})
			if e.err == nil || e.err.Type != c.want {
				t.Errorf("got %s, %v, last word %+v, want %s", e.value, e.err, e.last, c.want)
			}
			if e.last != nil {
				p = ready(t, testbin.Worker(t))
			}
		})
	}
}

// TestBuffersCountTogether: memories of WebAssembly, resizable and plain buffers have one limit, and end as it says without
// the process; garbage does not count.
func TestBuffersCountTogether(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	small := func(l *worker.Limits) { l.BufferBytes = 16 << 20 }
	for name, code := range map[string]string{
		"memory that grows": "const m = new WebAssembly.Memory({initial: 16}); for (let i = 0; i < 40; i++) { m.grow(16); for (const end = Date.now() + 10; Date.now() < end;); }",
		"a third of each": `const third = 7 << 20, keep = [new Uint8Array(third), new WebAssembly.Memory({initial: third >> 16})];
const b = new ArrayBuffer(0, {maxByteLength: 64 << 20}); b.resize(third); for (const end = Date.now() + 500; Date.now() < end;); return keep.length`,
	} {
		t.Run(name, func(t *testing.T) {
			if e := p.run(job{code: code, limits: small}); e.err == nil || e.err.Type != protocol.MemoryLimit {
				t.Errorf("got %s, %v, last word %+v", e.value, e.err, e.last)
			}
		})
	}
	e := p.run(job{code: "for (let i = 0; i < 60; i++) new Uint8Array(new WebAssembly.Memory({initial: 64}).buffer).fill(1); return 1", limits: small})
	if e.value != "1" {
		t.Errorf("garbage: %s, %v", e.value, e.err)
	}
}

// TestConsolePastItsLimits: the newest lines leave in batches, with what was left out before them, and a long one is cut.
func TestConsolePastItsLimits(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	var lines []worker.Log
	p.nextID++
	l := defaultLimits()
	l.LogLines, l.LogBytes = 10, 100
	code := "for (let i = 0; i < 5000; i++) console.log('line ' + i); console.log('é'.repeat(100))"
	if err := p.conn.Send(worker.Execute{ID: p.nextID, Code: code, Name: "main.js", Form: "auto", Language: "javascript", Network: "none", Limits: l}); err != nil {
		t.Fatal(err)
	}
	var skippedLines, skippedBytes uint64
	p.await(func(m worker.Message) bool {
		if line, ok := m.(worker.Log); ok {
			lines = append(lines, line)
			skippedLines, skippedBytes = skippedLines+line.SkippedLines, skippedBytes+line.SkippedBytes
		}
		_, over := m.(worker.Result)
		return over
	})
	last := lines[len(lines)-1]
	if lines[9].Text != "line 9" || last.Text != strings.Repeat("é", 25) {
		t.Errorf("the tenth line is %q, the last %q", lines[9].Text, last.Text)
	}
	if uint64(len(lines))+skippedLines != 5001 || skippedBytes < 150 {
		t.Errorf("%d lines, %d lines and %d bytes were left out", len(lines), skippedLines, skippedBytes)
	}
}

// TestBackgroundWorkIsNoDeadlock: what V8 did in the background may have begun, ended and posted its task between any two
// looks at it.
func TestBackgroundWorkIsNoDeadlock(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	limits := func(l *worker.Limits) { l.CPU, l.Wall, l.Total = time.Minute, time.Minute, time.Minute }
	for _, code := range []string{
		"for (let i = 0; i < 5000; i++) await WebAssembly.compile(m); return 1",
		"for (let i = 0; i < 500; i++) { await WebAssembly.compile(m); if (i % 50 == 0) await new Promise(r => setTimeout(r, 1)); } return 1",
		"setTimeout(() => {}, 1e6); for (let i = 0; i < 2000; i++) await WebAssembly.instantiate(m); return 1",
	} {
		for range 5 {
			e := p.run(job{code: "const m = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]); " + code, limits: limits})
			if e.value != "1" {
				t.Fatalf("%s: %v, %v", code, e.err, e.last)
			}
		}
	}
}

func TestHeapLimitsOfEverySize(t *testing.T) {
	for _, mib := range []int64{8, 64, 256} {
		p := ready(t, testbin.Worker(t))
		limits := func(l *worker.Limits) {
			l.HeapBytes, l.CPU, l.Wall, l.Total = mib<<20, time.Minute, time.Minute, time.Minute
		}
		e := p.run(job{code: "const a = []; for(;;) a.push({x: a.length})", limits: limits})
		if e.err == nil || e.err.Type != protocol.MemoryLimit {
			t.Fatalf("%d MiB: got %s, %v, last word %v", mib, e.value, e.err, e.last)
		}
		got, limit := int64(e.result.PeakHeapBytes), mib<<20
		t.Logf("%d MiB: peak %d MiB, RSS-free end", mib, got>>20)
		if got > 2*limit+(64<<20) || got < limit/4 {
			t.Fatalf("%d MiB: the program got %d MiB", mib, got>>20)
		}
		// Most of the limit can be used.
		p = ready(t, testbin.Worker(t)) // the other may find itself spent
		e = p.run(job{code: "const a = []; for(let i = 0; i < " + itoa(int(mib)) + " * 2; i++) a.push(new Array(32768).fill(i)); return a.length", limits: limits})
		if e.value != itoa(int(mib)*2) {
			t.Fatalf("%d MiB: a quarter of the heap gave %s, %v", mib, e.value, e.err)
		}
	}
}
