package pool

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/worker"
)

// faultyBench is a pool over workers whose layers a program can break by its name; see sandbox/faults_on.go.
func faultyBench(t *testing.T, c Config, o outside) *bench {
	t.Helper()
	c.Launcher = launcherOf(t, testbin.FaultyWorker(t))
	b := newBench(t, c, o)
	b.waitReady()
	return b
}

// blind is a meter that sees no memory.
type blind struct{ meter }

func (blind) rss() (int64, error) { return 0, nil }

// layers are the limits, each with what breaks on the inside and who then ends the program. The same ending has to come
// from all.
var layers = []struct {
	name   string
	code   string
	limits protocol.Limits
	typ    protocol.Type // empty for a value
	broken []broken
}{
	{"cpuMs", "for (;;);", protocol.Limits{CPUMs: 200}, protocol.CPUTimeout, clockLayers},
	{"wallMs", "for (;;);", protocol.Limits{WallMs: 300}, protocol.WallTimeout, clockLayers},
	{"totalMs", "for (;;);", protocol.Limits{TotalMs: 300}, protocol.TotalTimeout, clockLayers},
	{"cpuMs in a builtin", "[].indexOf.call({length: 2 ** 53 - 1}, 1)", protocol.Limits{CPUMs: 200}, protocol.CPUTimeout, []broken{{"", LayerWorker, false}, {"watchdog", LayerSupervisor, false}}},
	{"heapMiB", "const a = []; for (;;) a.push(new Array(1e4).fill(1.5))", protocol.Limits{HeapMiB: 16}, protocol.MemoryLimit, memoryLayers},
	{"bufferMiB", "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))", protocol.Limits{BufferMiB: 16}, protocol.MemoryLimit, memoryLayers},
	{"bufferMiB of WebAssembly", "const m = new WebAssembly.Memory({initial: 16}); for (;;) { m.grow(16); new Uint8Array(m.buffer, m.buffer.byteLength - (1 << 20)).fill(1); }", protocol.Limits{BufferMiB: 16}, protocol.MemoryLimit, memoryLayers[:2]},
	{"bufferMiB that is resized", "const b = new ArrayBuffer(0, {maxByteLength: 1 << 30}); for (let n = 1 << 20;; n += 1 << 20) { b.resize(n); new Uint8Array(b, n - (1 << 20)).fill(1); }", protocol.Limits{BufferMiB: 16}, protocol.MemoryLimit, memoryLayers[:2]},
	{"stackKiB", "const f = () => f(); try { f(); } catch (e) { return e.name; }", protocol.Limits{StackKiB: 200}, "", []broken{{"", LayerEngine, false}, {"stack", LayerEngine, false}}},
	{"resultBytes", "return 'x'.repeat(5000)", protocol.Limits{ResultBytes: 1000}, protocol.ResultTooLarge, []broken{{"", LayerEngine, false}, {"result", LayerContract, false}}},
	{"toolCalls", "for (;;) await tools.echo(1)", protocol.Limits{ToolCalls: 5}, protocol.ToolLimit, []broken{{"", LayerEngine, false}, {"calls", LayerContract, false}}},
	{"toolCallsInFlight", "for (let i = 0; i < 6; i++) tools.wait(i); await new Promise(() => {})", protocol.Limits{ToolCallsInFlight: 4}, protocol.ToolLimit, []broken{{"turns", LayerContract, false}}},
	{"timers", "for (;;) setTimeout(() => {}, 1e6)", protocol.Limits{Timers: 1, HeapMiB: 16}, protocol.MemoryLimit, []broken{{"timers", "", false}}},
}

// broken says what is broken and who then acts; empty where it may be one or the other.
type broken struct {
	without string
	by      Layer
	blind   bool // the supervisor does not see memory
}

var clockLayers = []broken{{"", LayerEngine, false}, {"engine", LayerWorker, false}, {"engine,watchdog", LayerSupervisor, false}}

var memoryLayers = []broken{
	{"", LayerEngine, false},
	{"heap,rlimit", LayerSupervisor, false},
	{"heap", LayerWorker, true}, // RLIMIT_DATA
}

// TestLayers: every limit holds with the layer inside it broken, and the ending is the same: its type, the logs so far and
// the calls that were made.
func TestLayers(t *testing.T) {
	if testing.Short() {
		t.Skip("each program runs until it is stopped, and most take their worker along")
	}
	o := realOutside()
	seeing := faultyBench(t, testConfig(), o)
	o.meter = func(pid int) (meter, error) {
		m, err := newProcMeter(pid)
		return blind{m}, err
	}
	notSeeing := faultyBench(t, testConfig(), o)
	for _, l := range layers {
		for _, x := range l.broken {
			t.Run(l.name+" without "+cmp.Or(x.without, "nothing"), func(t *testing.T) {
				b := seeing
				if x.blind {
					b = notSeeing
				}
				code := "console.log('before'); await tools.echo('first');\n" + l.code
				for range 3 { // on a machine that is busy a layer may be late, and the next one outwards acts
					if testLayer(t, b, code, l.limits, l.typ, x) {
						return
					}
				}
				t.Errorf("%s did not end it", x.by)
			})
		}
	}
}

// testLayer reports whether the layer that should have ended the program did.
func testLayer(t *testing.T, b *bench, code string, limits protocol.Limits, typ protocol.Type, x broken) bool {
	r := program(code)
	r.Limits = limits
	if x.without != "" {
		r.Name = "without:" + x.without
	}
	r.Call = func(ctx context.Context, c executor.ToolCall) (protocol.Value, error) {
		if c.Path[0] == "wait" {
			<-ctx.Done()
		}
		return c.Args, nil
	}
	before := b.Stats().Totals
	out := b.run(r)
	after := b.Stats().Totals
	acted := x.by == "" || after.Layers[x.by] == before.Layers[x.by]+1
	if got := texts(out); len(got) == 0 || got[0] != "before" {
		t.Errorf("logs %q", got)
	}
	if typ == "" {
		if string(out.Value) != `"RangeError"` {
			t.Errorf("got %s, %v", out.Value, out.Error)
		}
		return acted
	}
	want(t, out, typ, "")
	if len(out.Calls) == 0 || out.Calls[0].Provider != "tools" || out.Calls[0].Status != protocol.CallOK {
		t.Errorf("calls %+v", out.Calls)
	}
	if acted && x.by == LayerSupervisor && typ != protocol.MemoryLimit {
		late := b.failure(typ).Late
		if most := 250*time.Millisecond + busyMargin; late < stopGrace || late > most {
			t.Errorf("killed %s after the deadline", late)
		}
	}
	if out := b.run(program("return 42")); string(out.Value) != "42" {
		t.Errorf("the next program: %v", out.Error)
	}
	return acted
}

// busyMargin is for a machine that does other things when a timer fires.
const busyMargin = 500 * time.Millisecond

// failure is the last event of an execution that ended in typ.
func (b *bench) failure(typ protocol.Type) Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range slices.Backward(b.events) {
		if e.Kind == ExecutionFailed && e.Type == typ {
			return e
		}
	}
	return Event{}
}

// TestKillComesInTime: by the pool's own figures nothing runs on for 250 ms after its deadline, whichever clock it is of.
func TestKillComesInTime(t *testing.T) {
	const most = 250 * time.Millisecond
	if stopGrace > most || lookEvery+cpuGrace > most || worker.EngineGrace >= stopGrace {
		t.Errorf("grace %s, for CPU time %s and a look, of the engine %s", stopGrace, cpuGrace, worker.EngineGrace)
	}
	for _, c := range []struct {
		name  string
		after time.Duration // on the pool's clock
		wait  bool          // for a tool, so that only the total clock runs
		typ   protocol.Type
	}{
		{"wall", 10*time.Second + stopGrace, false, protocol.WallTimeout},
		{"total", 20*time.Second + stopGrace, true, protocol.TotalTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			var clock clockwork
			o, config := realOutside(), testConfig()
			config.Launcher = &inside{}
			o.now = clock.now
			o.meter = func(int) (meter, error) { return &dial{}, nil }
			b := newBench(t, config, o)
			b.waitReady()
			r := script("wait")
			asked := make(chan struct{})
			if c.wait {
				r = script("fire 1", "wait")
				r.Call = func(ctx context.Context, _ executor.ToolCall) (protocol.Value, error) {
					close(asked)
					<-ctx.Done()
					return nil, nil
				}
			}
			j := b.start("a", r)
			j.isRunning(t)
			if c.wait {
				<-asked
			}
			clock.ahead.Store(int64(c.after))
			<-j.done
			want(t, j.out, c.typ, "")
			if e := b.failure(c.typ); e.Layer != LayerSupervisor || e.Late < stopGrace || e.Late > stopGrace+busyMargin {
				t.Errorf("event %+v", e)
			}
		})
	}
}

// TestFloodOfLogs: a program that prints without end keeps its first and last lines, also when its process is killed.
func TestFloodOfLogs(t *testing.T) {
	b := faultyBench(t, testConfig(), realOutside())
	for _, x := range clockLayers {
		t.Run("without "+cmp.Or(x.without, "nothing"), func(t *testing.T) {
			r := program("for (let i = 0;; i++) console.log('line ' + i)")
			r.Limits = protocol.Limits{CPUMs: 300, LogLines: 20}
			if x.without != "" {
				r.Name = "without:" + x.without
			}
			out := b.run(r)
			want(t, out, protocol.CPUTimeout, "")
			if len(out.Logs) != 21 || out.Logs[9].Text != "line 9" || out.Logs[10].Truncated == nil {
				t.Fatalf("logs %q", texts(out))
			}
			lost := out.Logs[10].Truncated.Lines
			first, last := number(t, out.Logs[11].Text), number(t, out.Logs[20].Text)
			if last != first+9 || lost != first-10 || last < 1000 {
				t.Errorf("lines %d to %d after %d that are missing", first, last, lost)
			}
		})
	}
}

func number(t *testing.T, line string) (n int64) {
	t.Helper()
	text, ok := strings.CutPrefix(line, "line ")
	if !ok {
		t.Fatalf("line %q", line)
	}
	for _, c := range text {
		n = 10*n + int64(c-'0')
	}
	return n
}
