package worker

import "time"

// Version of the worker contract. Parent and worker must have the same.
const Version = 5

// Message is one frame of the contract. The concrete types below are all there are.
type Message interface{ kind() kind }

// kind is the first byte of a frame's body.
type kind uint8

// Frames of the parent are below 0x80, those of the worker from there on.
const (
	kindExecute    kind = 0x01
	kindToolResult kind = 0x02
	kindCancel     kind = 0x03
	kindInvoke     kind = 0x04
	kindRelease    kind = 0x05

	kindHello     kind = 0x81
	kindReady     kind = 0x82
	kindHeartbeat kind = 0x83
	kindToolCall  kind = 0x84
	kindLog       kind = 0x85
	kindResult    kind = 0x86
	kindLastWord  kind = 0x87

	kindFetch       kind = 0x88
	kindFetchRead   kind = 0x89
	kindFetchCancel kind = 0x8a
)

// Execute tells an idle worker to run one program. ID is the parent's number for the execution, never 0.
type Execute struct {
	ID        uint64
	Retain    string // what the ids of handles begin with; empty where the isolate does not stay
	Code      string
	Name      string // file name in stack traces, never empty
	Form      string // a protocol.Form, never empty
	Language  string // a protocol.Language, never empty
	Network   string // a protocol.Network, never empty
	Input     []byte // a protocol.Value; nil means undefined
	Providers []Provider
	Modules   []Module
	Limits    Limits
}

// Provider is a namespace of tools that the program gets.
type Provider struct {
	Name  string
	All   bool
	Paths [][]string
}

// Module is one module that the program may import.
type Module struct {
	Specifier string
	Type      string // a protocol.ModuleType, never empty
	Source    []byte // what the module is: the text, or the bytes themselves where Type is "bytes"
}

// Limits in force; none is zero.
type Limits struct {
	CPU, Wall, Total time.Duration
	HeapBytes        int64
	BufferBytes      int64
	SlackBytes       int64 // of the process beyond its state at rest, twice the heap and the buffers
	StackBytes       int64
	ResultBytes      int64
	MessageBytes     int64 // arguments of one tool call or one fetch, encoded
	ValueDepth       int64
	ValueParts       int64
	LogBytes         int64
	LogLines         int64
	ToolCalls        int64
	CallsInFlight    int64 // ToolCalls without a ToolResult
	Fetches          int64
	Timers           int64
}

// ToolResult answers a ToolCall, a Fetch or a FetchRead. Value is a protocol.Value when OK, else the JSON text of a
// protocol.ThrownError: for a Fetch that of a protocol.FetchHead, for a FetchRead the next bytes of the body, or null at
// its end. The worker drops one whose execution already ended: it crossed the Result.
type ToolResult struct {
	ID, Call uint64
	OK       bool
	Value    []byte
}

// Cancel stops an execution; its Result says protocol.Cancelled with Reason as message.
type Cancel struct {
	ID     uint64
	Reason string
}

// Invoke calls a handle of the isolate that the worker retains. ID is the parent's number for the invocation, greater than
// all before; its frames carry it as those of a program carry the execution's. Several may be under way.
type Invoke struct {
	ID     uint64
	Handle uint64 // number of the handle, at the end of its id
	Method string // empty: call the function; else "next", "return" or "throw" of the iterator
	Args   []byte // JSON text of an array of protocol.Values
	Limits Limits // those of memory, stack, modules, values, messages and timers stay the execution's, whatever is here
}

// Release gives up handles of the isolate that the worker retains; none means all of them. The parent says so in the end,
// whatever was released before, and the worker then makes itself ready, once nothing is under way.
type Release struct {
	Handles []uint64
}

// Hello is the worker's first frame, but for a LastWord. The worker has confined itself by then.
type Hello struct {
	Version uint32
	PID     uint32   // in the worker's own namespace
	Engine  string   // version of V8
	Layers  []string // the layers of isolation that the worker put in force, by name
	Missing []string // those that it could not, each as "NAME: REASON"
}

// Ready says that an isolate is restored and the worker takes an Execute. It follows Hello, each Result without Retained,
// and the Release of all handles.
type Ready struct {
	Restore time.Duration // what restoring took
}

// Heartbeat comes every HeartbeatInterval from a thread that JavaScript cannot block.
type Heartbeat struct {
	ID        uint64 // execution under way, 0 when idle
	RSSBytes  uint64
	HeapBytes uint64
	CPU, Wall time.Duration // of the execution under way
}

// ToolCall asks the host. Args is the JSON text of an array of protocol.Values.
type ToolCall struct {
	ID, Call uint64
	Provider string
	Path     []string
	Args     []byte
}

// Fetch asks for an HTTP exchange. Call is its number among all calls, ToolCalls included; Fetch the one by which the
// body is read and the exchange given up, greater than those before. Request is the JSON text of a protocol.FetchRequest.
type Fetch struct {
	ID, Call, Fetch uint64
	Request         []byte
}

// FetchRead asks for the next bytes of a body. It follows the answer to the Fetch, or to the FetchRead before.
type FetchRead struct {
	ID, Call, Fetch uint64
}

// FetchCancel gives an exchange up. A Fetch or FetchRead of it that waits gets no answer any more.
type FetchCancel struct {
	ID, Fetch uint64
}

// Log is one console line. A worker sends the lines of a program as they come while they are within the limits on logs,
// and after that the newest ones, LogInterval apart, with what was left out before each.
type Log struct {
	ID           uint64
	Level        string // a protocol.Level
	Time         time.Duration
	Text         string
	SkippedLines uint64
	SkippedBytes uint64
}

// Result is the end of an execution or an invocation, after all its Logs, ToolCalls and Fetches. With Retained the isolate
// stays. It does so where Execute asked for it and the value has a handle, and then until Release, or until one of
// the limits, or a Cancel, stopped an invocation: an isolate that was stopped is not used again.
type Result struct {
	ID       uint64
	Retained bool
	Handles  uint64 // the number of the newest handle: they count up from 1, in the order of the text
	Error    []byte // JSON text of a protocol.Error; nil when Value is set

	CPU, Wall     time.Duration
	PeakHeapBytes uint64
	ToolCalls     uint64
	Reached       []string // names of protocol.Limits that the program ran into and that did not end it

	Value []byte // a protocol.Value; nil when Error is set
}

// LastWord is written by a handler of a fatal condition just before the process exits with the matching status.
// Type is a protocol.Type that fits the cause, as "memory_limit".
type LastWord struct {
	ID     uint64 // execution under way, 0 when unknown
	Type   string
	Detail string
}

func (Execute) kind() kind     { return kindExecute }
func (ToolResult) kind() kind  { return kindToolResult }
func (Cancel) kind() kind      { return kindCancel }
func (Invoke) kind() kind      { return kindInvoke }
func (Release) kind() kind     { return kindRelease }
func (Hello) kind() kind       { return kindHello }
func (Ready) kind() kind       { return kindReady }
func (Heartbeat) kind() kind   { return kindHeartbeat }
func (ToolCall) kind() kind    { return kindToolCall }
func (Log) kind() kind         { return kindLog }
func (Fetch) kind() kind       { return kindFetch }
func (FetchRead) kind() kind   { return kindFetchRead }
func (FetchCancel) kind() kind { return kindFetchCancel }
func (Result) kind() kind      { return kindResult }
func (LastWord) kind() kind    { return kindLastWord }

// Exit statuses of a worker that ended itself. They say the cause even when the last word was lost.
const (
	ExitClosed     = 0  // the parent closed the channel
	ExitUsage      = 2  // wrong invocation
	ExitHeapOOM    = 70 // V8 could not allocate in its heap
	ExitProcessOOM = 71 // the process could not get memory (RLIMIT_DATA, bad_alloc)
	ExitFatal      = 72 // V8 found itself in an impossible state
	ExitProtocol   = 73 // the parent broke the contract
	ExitCPU        = 74 // cpuMs passed and the engine did not stop
	ExitWall       = 75 // wallMs passed and the engine did not stop
	ExitTotal      = 76 // totalMs passed and the engine did not stop
	ExitCancelled  = 77 // cancelled and the engine did not stop
	ExitSpent      = 78 // after a result: making room for the next program would cost more than a new process
)

// MaxHandles bounds the handles of one retained execution that were not released.
const MaxHandles = 1 << 16

// HeartbeatInterval is the time between two Heartbeats.
const HeartbeatInterval = 500 * time.Millisecond

// EngineGrace is the time that the engine has between being told to stop and the worker's own exit. The parent kills what
// is still there another 100 ms later, so that nothing runs on for more than 250 ms after a deadline.
const EngineGrace = 125 * time.Millisecond

// LogInterval is the time between two batches of lines beyond the limits on logs.
const LogInterval = 50 * time.Millisecond
