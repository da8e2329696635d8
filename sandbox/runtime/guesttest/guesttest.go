// Package guesttest runs one program at a time in the real engine with the real library, for the tests of packages
// runtime and entry. It is no sandbox: there are no limits on time, and the clock of timers is virtual, so a test never
// waits. Each Execute has an isolate of its own, restored from the library's snapshot as in a worker; tests may not run
// in parallel.
package guesttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/sandbox"
	"github.com/executord/executord/sandbox/entry"
	"github.com/executord/executord/sandbox/runtime"
	"github.com/executord/executord/sandbox/v8"
)

const makeCommand = "make-snapshot"

// Main is the body of a TestMain. It makes the test binary its own throw-away process that builds the snapshot.
func Main(m *testing.M) {
	if len(os.Args) != 2 || os.Args[1] != makeCommand {
		os.Exit(m.Run())
	}
	blob, err := v8.MakeSnapshot(runtime.Source(), runtime.Warm())
	if err == nil {
		_, err = os.Stdout.Write(blob)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// blob is the library's snapshot.
var blob = sync.OnceValue(func() []byte {
	cmd := exec.Command(os.Args[0], makeCommand)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		panic(fmt.Sprintf("cannot make the snapshot: %v", err))
	}
	return out
})

// SnapshotSize is the size of the library's snapshot in bytes.
func SnapshotSize() int { return len(blob()) }

var snapshot = sync.OnceValue(func() *v8.Snapshot { return v8.LoadSnapshot(blob()) })

const (
	memory   = 64 << 20
	maxValue = 8 << 20
)

var analyzer = sync.OnceValue(func() *v8.Isolate {
	iso, err := v8.New(v8.Config{Snapshot: snapshot(), Library: runtime.AnalyzerSource(), Plain: true, AllowEval: true, HeapBytes: memory, BufferBytes: memory})
	if err != nil {
		panic(err)
	}
	return iso
})

// Analyze is the real analyzer.
func Analyze(code, form string) (string, error) {
	return runtime.Analyze(analyzer().Call, code, form)
}

// Program is what Execute runs.
type Program struct {
	Code      string
	Form      protocol.Form
	Input     string            // encoded; empty for undefined
	Providers string            // JSON text of the array in the library's configuration
	Modules   map[string]string // ES modules by specifier
	Network   bool              // there is one; see network
}

// Outcome of a program. Err is the *entry.Rejected or *v8.Error with which it failed.
type Outcome struct {
	Form  protocol.Form
	Value string   // encoded
	Logs  []string // "level text", further lines of the text after a line feed
	Calls []string // "provider.path[args]", and for a fetch "METHOD address" and "given up: number"
	Err   error
}

// Syntax returns the typed error of a program that does not compile, nil for any other outcome.
func (o *Outcome) Syntax() *protocol.Error {
	var e *protocol.Error
	if errors.As(o.Err, &e) && e.Type == protocol.Syntax {
		return e
	}
	return nil
}

// Execute runs p to its end. A tool answers with its first argument; one named "fail" throws.
func Execute(t testing.TB, p Program) *Outcome {
	t.Helper()
	program, err := entry.Plan(Analyze, p.Code, p.Form)
	var rejected *entry.Rejected
	if err != nil && !errors.As(err, &rejected) {
		t.Fatal(err)
	}
	services, end := sandbox.NewServices()
	defer end()
	h := &host{program: program, modules: p.Modules, services: services, waiting: map[uint64]string{}}
	if rejected != nil {
		if rejected.Probe == nil {
			return &Outcome{Err: err}
		}
		h.program = rejected.Probe
	}
	o := h.run(t, p)
	var engine *v8.Error
	if errors.As(o.Err, &engine) && engine.Kind == v8.KindSyntax {
		if rejected != nil {
			o.Err = rejected.Refine(engine.Message, engine.Line, engine.Column)
		} else {
			o.Err = program.SyntaxError(engine.Message, engine.Line, engine.Column)
		}
	} else if rejected != nil {
		t.Fatalf("the engine compiled a probe: %q", h.program.Source)
	}
	return o
}

// isolate makes one that knows no providers yet.
func (h *host) isolate(t testing.TB) *v8.Isolate {
	t.Helper()
	iso, err := v8.New(v8.Config{
		Snapshot: snapshot(), Library: runtime.Source(), HeapBytes: memory, BufferBytes: memory, AllowEval: true, AllowWasm: true, Host: h,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { iso.Close() })
	return iso
}

var limits = v8.Limits{HeapBytes: memory, BufferBytes: memory, StackBytes: v8.DefaultStackBytes, Depth: 200, Nodes: 100_000, MessageBytes: maxValue}

// Codec returns v8.Isolate.RoundTrip of a new isolate.
func Codec(t testing.TB) func(text string, script bool) ([]byte, error) {
	t.Helper()
	iso := (&host{}).isolate(t)
	if err := iso.Begin(`{"providers":[]}`, limits); err != nil {
		t.Fatal(err)
	}
	return func(text string, script bool) ([]byte, error) { return iso.RoundTrip(text, script, maxValue) }
}

func (h *host) run(t testing.TB, p Program) *Outcome {
	t.Helper()
	iso := h.isolate(t)
	defer iso.Close()
	providers := p.Providers
	if providers == "" {
		providers = "[]"
	}
	mode := "none"
	if p.Network {
		mode = "host"
	}
	if err := iso.Begin(`{"providers":`+providers+`,"network":"`+mode+`"}`, limits); err != nil {
		t.Fatal(err)
	}
	value := ""
	err := iso.Run("main.js", h.program.Source, h.program.Call(), []byte(p.Input))
	if err == nil {
		value, err = h.loop(iso)
	}
	return &Outcome{Form: h.program.Form, Value: value, Logs: h.logs, Calls: h.calls, Err: err}
}

// ErrDeadlock is the Err of a program that waits for nothing.
var ErrDeadlock = errors.New("nothing is left that could settle the program")

// loop gives the program what it waits for, tools before timers, until it is settled. The clock stands still while the
// engine works in the background, as it does when it compiles WebAssembly.
func (h *host) loop(iso *v8.Isolate) (string, error) {
	quiet := false // nothing went on in the background before the last turn
	for {
		state, err := iso.Drain()
		if err != nil {
			return "", err
		}
		if state != v8.Pending {
			v, err := iso.Value(maxValue)
			return string(v), err
		}
		if len(h.pending) > 0 {
			c := h.pending[0]
			h.pending = h.pending[1:]
			delete(h.waiting, c.id)
			err = iso.Resolve(c.id, c.ok, c.text)
		} else if _, busy := v8.Background(); busy || !quiet {
			quiet = !busy
			goruntime.Gosched()
			continue
		} else if id, last, ok := h.clock.next(); ok {
			err = iso.Fire(id, last, 0)
		} else {
			err = ErrDeadlock
		}
		if err != nil {
			return "", err
		}
		quiet = false
	}
}

// host is the outside world of one program.
type host struct {
	v8.NoServices
	program *entry.Program
	modules map[string]string
	logs    []string
	calls   []string
	pending []answer
	clock   clock
	network network
	waiting map[uint64]string // calls of fetches without an answer, by id, with the number of the exchange

	services sandbox.Services
}

type answer struct {
	id   uint64
	ok   bool
	text []byte
}

func (h *host) ToolCall(id uint64, provider string, path []string, args []byte) bool {
	if provider == "" {
		return h.fetch(id, path, args)
	}
	h.calls = append(h.calls, provider+"."+strings.Join(path, ".")+string(args))
	a := answer{id, true, []byte(`{"@undefined":true}`)}
	var list []json.RawMessage
	if err := json.Unmarshal(args, &list); err == nil && len(list) > 0 {
		a.text = list[0]
	}
	if path[len(path)-1] == "fail" {
		a.ok, a.text = false, []byte(`{"message":"no luck"}`)
	}
	h.pending = append(h.pending, a)
	return true
}

func (h *host) Log(level, text string) { h.logs = append(h.logs, level+" "+text) }

func (h *host) TimerStart(ms float64, repeat bool) uint32 { return h.clock.start(ms, repeat) }

func (h *host) TimerStop(id uint32) { h.clock.stop(id) }

func (h *host) ResolveModule(specifier, referrer, _ string) (v8.ModuleText, error) {
	source, ok := h.modules[specifier]
	if !ok {
		return v8.ModuleText{}, fmt.Errorf("cannot find module %q imported from %q", specifier, referrer)
	}
	return v8.ModuleText{Kind: v8.ModuleESM, Key: specifier, Source: source}, nil
}

// Part gives the library's parts, without code caches.
func (h *host) Part(name string) (v8.Part, bool) {
	text, ok := runtime.Part(name)
	return v8.NewPart(text, nil), ok
}

// Op performs the operations that a worker performs, and those of the network that package guesttest plays.
func (h *host) Op(args []any) (any, error) {
	if args[0] == "fetch.cancel" {
		h.cancelFetch(strconv.FormatFloat(args[1].(float64), 'f', 0, 64))
		return nil, nil
	}
	return h.services.Op(args)
}

func (h *host) MapPosition(file string, line, column int) (int, int) {
	if file != "main.js" {
		return line, column
	}
	return h.program.Map(line, column)
}

// Place returns where in the submitted text the engine saw err, zeros when it does not say.
func Place(err error) (line, column int) {
	var e *v8.Error
	if errors.As(err, &e) {
		return e.Line, e.Column
	}
	return 0, 0
}
