package protocol

import "encoding/json"

// Version and Subprotocol name this contract on the wire.
const (
	Version     = "1"
	Subprotocol = "executor.v1"
)

// Value is one encoded value: JSON text by the codec of this package. A nil Value means "absent".
type Value = json.RawMessage

// Form says how the submitted text is to be read.
type Form string

// The entry forms. Empty means FormAuto.
const (
	FormAuto     Form = "auto"
	FormModule   Form = "module"
	FormFunction Form = "function"
	FormScript   Form = "script"
)

// Language of the submitted text. Empty means JavaScript.
type Language string

// The languages.
const (
	JavaScript Language = "javascript"
	TypeScript Language = "typescript"
)

// Network says where requests of the program go. Empty means NetworkNone.
type Network string

// The network modes.
const (
	NetworkNone   Network = "none"
	NetworkHost   Network = "host"
	NetworkDirect Network = "direct"
)

// Execute is the parameters of the execute call. The zero value of an optional field means its default.
// Unknown fields are refused, so that a misspelt limit never means "no limit".
type Execute struct {
	Execution string                  `json:"execution,omitempty"` // caller's id, unique in the session
	Code      string                  `json:"code"`
	Form      Form                    `json:"form,omitempty"`
	Language  Language                `json:"language,omitempty"`
	Name      string                  `json:"name,omitempty"` // file name in stack traces, default "main.js"
	Input     Value                   `json:"input,omitempty"`
	Providers []Provider              `json:"providers,omitempty"`
	Modules   map[string]ModuleSource `json:"modules,omitempty"`
	Network   Network                 `json:"network,omitempty"`
	Limits    Limits                  `json:"limits,omitzero"`
	Logs      LogOptions              `json:"logs,omitzero"`
	Retain    *Retain                 `json:"retain,omitempty"`
	Trace     *Trace                  `json:"trace,omitempty"`
}

// Provider announces a namespace of tools to the program.
type Provider struct {
	Name  string `json:"name"`
	Tools Tools  `json:"tools,omitzero"` // absent means all
}

// Tools lists the tools of a provider, or all names. On the wire: "*", or an array whose items are a name or a path
// (an array of names, so that ["users","get"] is called as provider.users.get()). All means that every single name
// is a tool and the host answers for those that do not exist.
type Tools struct {
	All   bool
	Paths [][]string
}

// ModuleSource is one module that the program may import by its key in Execute.Modules.
type ModuleSource struct {
	Source string     `json:"source"` // base64 where Type is "bytes"
	Type   ModuleType `json:"type,omitempty"`
}

// ModuleType is the kind of a ModuleSource. Empty means ModuleESM.
type ModuleType string

// The module types.
const (
	ModuleESM      ModuleType = "module"
	ModuleCommonJS ModuleType = "commonjs"
	ModuleJSON     ModuleType = "json"
	ModuleText     ModuleType = "text"
	ModuleBytes    ModuleType = "bytes"
)

// Limits of one execution. Zero means the service's default; an explicit zero or negative number on the wire is
// refused. The service lowers each to its maximum and reports what was in force in Stats.Limits. docs/limits.md says of
// each who enforces it and what happens at it.
type Limits struct {
	CPUMs             int64 `json:"cpuMs,omitempty"`             // CPU time of the isolate's thread
	WallMs            int64 `json:"wallMs,omitempty"`            // guest's own time: stops while it only waits for the host
	TotalMs           int64 `json:"totalMs,omitempty"`           // everything since it began to run
	HeapMiB           int64 `json:"heapMiB,omitempty"`           // JavaScript heap
	BufferMiB         int64 `json:"bufferMiB,omitempty"`         // ArrayBuffers and memories of WebAssembly
	SlackMiB          int64 `json:"slackMiB,omitempty"`          // the process beyond its state at rest, twice the heap and the buffers
	StackKiB          int64 `json:"stackKiB,omitempty"`          // JavaScript stack; a RangeError in the program
	ResultBytes       int64 `json:"resultBytes,omitempty"`       // encoded result value
	MessageBytes      int64 `json:"messageBytes,omitempty"`      // encoded arguments of one tool call, its answer, one request of a fetch; an error in the program
	ModuleBytes       int64 `json:"moduleBytes,omitempty"`       // code and modules together; invalid_params
	ValueDepth        int64 `json:"valueDepth,omitempty"`        // nesting of one encoded value
	ValueParts        int64 `json:"valueParts,omitempty"`        // objects and primitives in one encoded value
	LogBytes          int64 `json:"logBytes,omitempty"`          // text of all log lines that are kept
	LogLines          int64 `json:"logLines,omitempty"`          // log lines that are kept
	ToolCalls         int64 `json:"toolCalls,omitempty"`         // tool calls in all
	ToolCallsInFlight int64 `json:"toolCallsInFlight,omitempty"` // tool calls that the host has at once; more wait for their turn
	Fetches           int64 `json:"fetches,omitempty"`           // HTTP exchanges in all; each redirect that is followed is one more
	FetchBytes        int64 `json:"fetchBytes,omitempty"`        // bodies of all exchanges, sent and received, after decompression; a RangeError in the program
	Timers            int64 `json:"timers,omitempty"`            // timers that are pending at once; a RangeError in the program
}

// LogOptions of an execution.
type LogOptions struct {
	Stream bool `json:"stream,omitempty"` // send execution.log notifications as lines appear
}

// Retain asks that an execution's isolate stays where its value has functions, iterators or streams: they cross as handles,
// for handle.invoke. On the wire true is one without fields, and false is none.
type Retain struct {
	TTLMs int64 `json:"ttlMs,omitempty"` // for so long after it settled at most; 0 means the service's maximum
}

// Retained tells of an isolate that stays. It ends when all its handles were released, or nothing was invoked for IdleMs,
// or TTLMs after this outcome, or with its session.
type Retained struct {
	ID      string `json:"id"`      // the ids of handles are this, a dot and a number; in handle.release it stands for all of them
	Handles uint64 `json:"handles"` // in this value
	IdleMs  int64  `json:"idleMs"`
	TTLMs   int64  `json:"ttlMs"`
}

// Trace carries the W3C Trace Context of the caller.
type Trace struct {
	Traceparent string `json:"traceparent,omitempty"`
	Tracestate  string `json:"tracestate,omitempty"`
}

// Status says how an Outcome is to be read.
type Status string

// The two statuses.
const (
	StatusOK    Status = "ok"
	StatusError Status = "error"
)

// Outcome is how an execution that began to run ended: a value, or a typed error; in both cases everything it
// printed.
type Outcome struct {
	Status Status `json:"status"`
	Value  Value  `json:"value,omitempty"` // with StatusOK; never nil there
	Error  *Error `json:"error,omitempty"` // with StatusError
	Logs   []Log  `json:"logs"`
	Calls  []Call `json:"calls,omitempty"` // with StatusError: the tool calls that were made, in order
	Stats  Stats  `json:"stats"`

	Retained *Retained `json:"retained,omitempty"` // where the isolate stays
}

// Call is one tool call of a program that ended in an error: what it had done by then stays done. The first and the last
// of many are listed, with one item that has nothing but Omitted in between.
type Call struct {
	Call     uint64     `json:"call,omitempty"` // as in tool.call
	Provider string     `json:"provider,omitempty"`
	Path     []string   `json:"path,omitempty"`
	Status   CallStatus `json:"status,omitempty"`
	Ms       float64    `json:"ms,omitempty"`      // from the call to its answer
	Omitted  int64      `json:"omitted,omitempty"` // calls that the list leaves out here
}

// CallStatus says what became of a tool call.
type CallStatus string

// The statuses of a call. One that is pending had no answer when the execution ended; its host may have acted on it.
const (
	CallOK      CallStatus = "ok"
	CallError   CallStatus = "error"
	CallPending CallStatus = "pending"
)

// Err is nil for StatusOK and the typed error otherwise.
func (o *Outcome) Err() error {
	if o.Status == StatusOK || o.Error == nil {
		return nil
	}
	return o.Error
}

// Level of a log line.
type Level string

// The levels of the console.
const (
	LevelDebug Level = "debug"
	LevelInfo  Level = "info"
	LevelLog   Level = "log"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)

// Log is one console line of a program. Past the limits on logs the first and the last lines are kept, with one marker line
// with Truncated in between.
type Log struct {
	Level     Level      `json:"level"`
	Time      float64    `json:"time"` // milliseconds since the execution began to run
	Text      string     `json:"text"`
	Args      []Value    `json:"args,omitempty"`
	Truncated *Truncated `json:"truncated,omitempty"`
}

// Truncated counts what a bound on logs left out.
type Truncated struct {
	Lines int64 `json:"lines"`
	Bytes int64 `json:"bytes"`
}

// Stats of one execution. Times are in milliseconds.
type Stats struct {
	QueueMs       float64 `json:"queueMs"`
	WallMs        float64 `json:"wallMs"`  // guest's own time, as Limits.WallMs counts it
	TotalMs       float64 `json:"totalMs"` // from dispatch to outcome
	CPUMs         float64 `json:"cpuMs"`
	PeakHeapBytes int64   `json:"peakHeapBytes"`
	ToolCalls     int64   `json:"toolCalls"`
	Fetches       int64   `json:"fetches"`
	Worker        string  `json:"worker,omitempty"`
	Limits        *Limits `json:"limits,omitempty"` // in force
}

// State is the news of an execution's progress.
type State struct {
	Execution string `json:"execution"`
	State     string `json:"state"`              // StateQueued or StateRunning
	Position  int    `json:"position,omitempty"` // place in the queue, from 1, with StateQueued
}

// The states of an execution before its outcome.
const (
	StateQueued  = "queued"
	StateRunning = "running"
)

// ThrownError is a tool's failure as the program sees it: thrown there as an Error of this name and message.
type ThrownError struct {
	Name    string `json:"name,omitempty"`
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
	// Thrown replaces the Error by any value, for hosts that throw what is not an Error.
	Thrown Value `json:"thrown,omitempty"`
}

func (e *ThrownError) Error() string {
	if e.Name == "" {
		return e.Message
	}
	return e.Name + ": " + e.Message
}
