package codemode

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// DefaultTimeout is how long a program may run and wait for its tools, unless Config says otherwise.
const DefaultTimeout = time.Minute

// timedOut is the dialect's text for every program that did not come to an end in its time.
const timedOut = "Execution timed out"

// timeouts are its endings. What can never settle would wait for that.
var timeouts = []protocol.Type{protocol.CPUTimeout, protocol.WallTimeout, protocol.TotalTimeout, protocol.Deadlock}

// wide is for what the dialect does not bound: the service's maxima do.
var wide = protocol.Limits{
	HeapMiB: 128, BufferMiB: 128, ResultBytes: 32 << 20, MessageBytes: 32 << 20, LogBytes: 1 << 30, LogLines: 1 << 30,
	ToolCalls: 1 << 30, ToolCallsInFlight: 1 << 16, Fetches: 1 << 30, FetchBytes: 1 << 30, Timers: 1 << 24,
}

// Config is how an Executor runs programs. Zero fields mean their defaults.
type Config struct {
	// Timeout is how long a program may run and wait for its tools; DefaultTimeout unless given. It is rounded up to
	// milliseconds.
	Timeout time.Duration
	// Modules are sources of ES modules by the names by which programs may import them.
	Modules map[string]string
	// Outbound performs the requests of programs; without it they fail.
	Outbound executor.Fetch
	// Limits are those of the service in place of the ones that follow from Timeout and from the dialect, where set.
	Limits protocol.Limits
}

// Executor runs programs of the dialect.
type Executor struct {
	native executor.Executor
	config Config
}

// New makes an Executor over another, which it does not close.
func New(native executor.Executor, c Config) *Executor {
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	return &Executor{native, c}
}

// Tool is a function of the host. Call gets one Value for each argument, by the rules of JSON and with bytes: a program's
// undefined is null there, its dates are strings. What it answers is held to the same rules. The program sees of an error its
// message only. Call may be called by several goroutines at once; ctx ends with the execution.
type Tool struct {
	Name string // in a program it is SanitizeToolName of that
	Call executor.Tool
}

// Provider is a namespace of tools.
type Provider struct {
	Name  string // an identifier
	Tools []Tool
	// Prelude is a list of statements that run in the program before it, once all namespaces are there.
	Prelude string
}

// Connector is a namespace of which every name is a method. Values cross as structured clones. What Call answers is a value, or
// an object whose member __codemode_control__ is "pause", or "error" with a message.
type Connector struct {
	Name string
	Call func(ctx context.Context, method string, argument protocol.Value) (protocol.Value, error)
}

// Options of one execution.
type Options struct {
	Connectors []Connector
	// OnLog hears each line as it is printed, in order; it must not block for long. Nil means not interested.
	OnLog func(line string)
}

// Result is what became of a program.
type Result struct {
	// Value is what the program returned; nil when there is an error.
	Value protocol.Value
	// Error is the message of what went wrong; empty when nothing did.
	Error string
	// Logs are the lines of console.log, warn and error; nil when the program was refused before it ran.
	Logs []string
	// Fault is the typed error behind Error. Nil where the program itself threw, and where its names were refused.
	Fault *protocol.Error
}

// Execute runs code, as a model wrote it, and blocks until it ended. Whatever goes wrong is the result's error. Executions may
// run at once, also from within a tool of another. Cancelling ctx stops the program.
func (e *Executor) Execute(ctx context.Context, code string, providers []Provider, o Options) Result {
	tools := make(map[string]map[string]Tool, len(providers))
	fault := faultOf(providers, o.Connectors)
	for _, p := range providers {
		if fault == "" {
			tools[p.Name], fault = toolsOf(p)
		}
	}
	if fault != "" {
		return Result{Error: fault}
	}
	if len(code) > protocol.MaxCodeBytes { // the service would refuse it, after we had read it
		return Result{Error: fmt.Sprintf("code has %d bytes, more than %d", len(code), protocol.MaxCodeBytes)}
	}
	mark := newMark()
	r := e.request(moduleOf(NormalizeCode(code), providers, o.Connectors, mark))
	h := host{tools: tools, connectors: o.Connectors, mark: mark}
	r.Provide(executor.Provider{Name: hostName, Tools: map[string]executor.Tool{"call": h.call}})
	call := r.Call
	r.Call = func(ctx context.Context, c executor.ToolCall) (protocol.Value, error) {
		return call(context.WithValue(ctx, callKey{}, c.Call), c)
	}
	if o.OnLog != nil {
		r.Logs.Stream = true
		r.OnLog = func(l protocol.Log) {
			if line, ok := lineOf(l); ok {
				o.OnLog(line)
			}
		}
	}
	outcome, err := e.native.Execute(ctx, r)
	if err != nil {
		return failed(protocol.AsError(err), nil)
	}
	logs := linesOf(outcome.Logs)
	if outcome.Err() != nil {
		return failed(outcome.Error, logs)
	}
	return resultOf(outcome.Value, logs)
}

type callKey struct{}

// CallNumber is the number of the tool call that ctx was given for. Calls have larger numbers than those that the program made
// before them, also where they come in at once; 0 is no call.
func CallNumber(ctx context.Context) uint64 {
	n, _ := ctx.Value(callKey{}).(uint64)
	return n
}

func (e *Executor) request(module string) executor.Request {
	ms := int64(math.Ceil(float64(e.config.Timeout) / float64(time.Millisecond)))
	limits := wide
	limits.CPUMs, limits.WallMs, limits.TotalMs = ms, ms, ms
	given := e.config.Limits
	for _, name := range protocol.LimitNames() {
		if n := *given.Field(name); n != 0 {
			*limits.Field(name) = n
		}
	}
	r := executor.Request{Execute: protocol.Execute{Code: module, Form: protocol.FormModule, Name: "program.js", Limits: limits}}
	for name, source := range e.config.Modules {
		if name == "executor.js" {
			continue // the reference's own file
		}
		if r.Modules == nil {
			r.Modules = map[string]protocol.ModuleSource{}
		}
		r.Modules[name] = protocol.ModuleSource{Source: source}
	}
	if e.config.Outbound != nil {
		r.Network, r.Fetch = protocol.NetworkHost, e.config.Outbound
	}
	return r
}

// resultOf reads what the harness answers.
func resultOf(v protocol.Value, logs []string) Result {
	graph, err := protocol.Decode(v, protocol.ValueBounds)
	if err != nil {
		return failed(protocol.Errorf(protocol.Internal, "cannot read the result: %s", err), logs)
	}
	o, _ := graph.(*protocol.Object)
	if o == nil || len(o.Members) != 1 {
		return failed(protocol.Errorf(protocol.Internal, "the program answered in no form of the dialect"), logs)
	}
	if o.Members[0].Key == "error" {
		text := messageOf(o.Members[0].Value)
		if text == "" {
			text = "the program failed"
		}
		return Result{Error: text, Logs: logs}
	}
	// Written anew: references in it lead to places of the whole.
	if v, err = protocol.Encode(o.Members[0].Value); err != nil {
		return failed(protocol.Errorf(protocol.Internal, "cannot keep the result: %s", err), logs)
	}
	return Result{Value: v, Logs: logs}
}

func failed(fault *protocol.Error, logs []string) Result {
	if logs == nil {
		logs = []string{}
	}
	return Result{Error: faultText(fault), Logs: logs, Fault: fault}
}

func faultText(fault *protocol.Error) string {
	switch {
	case slices.Contains(timeouts, fault.Type):
		return timedOut
	case fault.Message == "":
		return "the execution failed"
	case errors.Is(fault, protocol.Syntax):
		return "SyntaxError: " + fault.Message
	case errors.Is(fault, protocol.ResultUnserializable):
		// The program's value is in an object of the harness.
		return strings.Replace(fault.Message, "(at result.value", "(at result", 1)
	}
	return fault.Message
}

// linesOf are the lines of the dialect among those of the service.
func linesOf(logs []protocol.Log) []string {
	lines := make([]string, 0, len(logs))
	for _, l := range logs {
		if line, ok := lineOf(l); ok {
			lines = append(lines, line)
		}
	}
	return lines
}

// lineOf is a line of the dialect: the harness prints at level debug, and nothing else does.
func lineOf(l protocol.Log) (line string, ok bool) {
	if l.Truncated != nil {
		return fmt.Sprintf("[%d lines are left out here]", l.Truncated.Lines), true
	}
	return l.Text, l.Level == protocol.LevelDebug
}
