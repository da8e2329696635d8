package pool

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// The test binary is also the worker: a child started with -channel plays the scripts that it gets as code.

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "-channel":
			childMain()
		case "-make-snapshot":
			snapshotMain()
		case "-parent":
			parentMain()
		case "-restricted":
			restrictedMain(os.Args[2], os.Args[3])
		case "-denied":
			deniedMain(os.Args[2])
		}
	}
	os.Exit(m.Run())
}

// mode is the argument of the launcher that says how the fake is to misbehave outside of executions.
func mode() string { return os.Args[len(os.Args)-1] }

func snapshotMain() {
	switch mode() {
	case "snapshot-fails":
		fmt.Fprintln(os.Stderr, "no such engine")
		os.Exit(3)
	case "snapshot-hangs":
		select {}
	case "snapshot-empty":
	case "snapshot-big":
		_, _ = io.CopyN(os.Stdout, zeros{}, maxSnapshot+10)
	default:
		fmt.Print("snapshot bytes")
	}
	os.Exit(0)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func childMain() {
	flags := flag.NewFlagSet("fake", flag.ExitOnError)
	channel := flags.Int("channel", -1, "")
	flags.Int("snapshot", -1, "")
	_ = flags.Parse(os.Args[1:])
	file := os.NewFile(uintptr(*channel), "channel")
	nc, err := net.FileConn(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "no channel:", err)
		os.Exit(worker.ExitUsage)
	}
	file.Close()
	runFake(nc, mode(), os.Exit)
}

// fake is a worker that does what its scripts say.
type fake struct {
	raw    net.Conn
	conn   *worker.Conn
	exit   func(int)
	mode   string
	id     atomic.Uint64
	mute   atomic.Bool
	inbox  chan worker.Message // tool results and cancels
	frames chan worker.Message
	calls  uint64
	fetched
	retains
}

// runFake serves a channel until exit, which does not return.
func runFake(nc net.Conn, mode string, exit func(int)) {
	conn, err := worker.NewConn(nc, worker.Options{Side: worker.Worker})
	if err != nil {
		panic(err)
	}
	f := &fake{raw: nc, conn: conn, exit: exit, mode: mode, inbox: make(chan worker.Message, 1000), frames: make(chan worker.Message)}
	defer conn.Close()
	f.hello()
	done := make(chan struct{})
	defer close(done)
	go f.read(done)
	go f.beat(done)
	for m := range f.frames {
		f.execute(m.(worker.Execute))
		if f.mode == "spent" {
			f.leave(worker.ExitSpent)
		}
		f.send(worker.Ready{Restore: time.Millisecond})
	}
	f.leave(worker.ExitClosed)
}

func (f *fake) leave(status int) {
	_ = f.conn.Flush()
	f.exit(status)
	runtime.Goexit()
}

func (f *fake) hello() {
	version := uint32(worker.Version)
	switch f.mode {
	case "exit-at-start":
		fmt.Fprintln(os.Stderr, "cannot find the engine")
		f.leave(9)
	case "wrong-version":
		version = 99
	case "no-hello":
		select {}
	case "ready-first":
		f.send(worker.Ready{})
	}
	f.send(worker.Hello{Version: version, PID: uint32(os.Getpid()), Engine: "fake\x1b[31m", Layers: []string{"none"}})
	if f.mode == "no-ready" {
		select {}
	}
	f.send(worker.Ready{Restore: time.Millisecond})
	if f.mode == "die-when-ready" {
		f.leave(5)
	}
}

func (f *fake) send(m worker.Message) { _ = f.conn.Send(m) }

func (f *fake) read(done chan struct{}) {
	defer close(f.frames)
	for {
		m, err := f.conn.Receive()
		if err != nil {
			if f.mode == "stays" {
				<-done
			}
			if f.mode != "inside" && f.mode != "late" {
				os.Exit(worker.ExitClosed)
			}
			close(f.inbox)
			return
		}
		if _, ok := m.(worker.Execute); ok {
			f.frames <- m
			continue
		}
		f.inbox <- m
	}
}

func (f *fake) beat(done chan struct{}) {
	tick := time.NewTicker(worker.HeartbeatInterval)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if !f.mute.Load() {
				f.send(worker.Heartbeat{ID: f.id.Load(), HeapBytes: 1234})
			}
		}
	}
}

// execute plays the lines of a script: each a verb and its argument.
func (f *fake) execute(m worker.Execute) {
	f.id.Store(m.ID)
	f.calls, f.fetched = 0, fetched{}
	for line := range strings.SplitSeq(m.Code, "\n") {
		verb, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
		if f.step(m, verb, arg) {
			return
		}
	}
	f.result(m, `{"@undefined":true}`)
}

func (f *fake) result(m worker.Execute, value string) {
	f.send(worker.Result{ID: m.ID, Value: []byte(value), CPU: time.Millisecond, Wall: 2 * time.Millisecond, PeakHeapBytes: 99})
}

func (f *fake) fault(m worker.Execute, text string) {
	f.send(worker.Result{ID: m.ID, Error: []byte(text)})
}

// step does one line; true means that the execution is over.
func (f *fake) step(m worker.Execute, verb, arg string) bool {
	number, _ := strconv.Atoi(arg)
	span, _ := time.ParseDuration(arg)
	switch verb {
	case "log":
		f.send(worker.Log{ID: m.ID, Level: "log", Text: arg})
	case "loglevel":
		f.send(worker.Log{ID: m.ID, Level: arg, Text: "x"})
	case "logs":
		for i := range number {
			f.send(worker.Log{ID: m.ID, Level: "log", Text: fmt.Sprintf("line %d", i)})
		}
	case "sleep":
		time.Sleep(span)
	case "wait": // until cancelled
		f.awaitCancel(m)
		return true
	case "heedless": // of a cancellation, which it waits for
		for msg := range f.inbox {
			if _, is := msg.(worker.Cancel); is {
				return false
			}
		}
		f.leave(0)
	case "hang":
		f.hang()
	case "silent":
		f.mute.Store(true)
		f.hang()
	case "spin":
		for {
			number++
		}
	case "grow":
		ballast := make([]byte, number<<20)
		for i := range ballast {
			ballast[i] = byte(i)
		}
		f.hang()
	case "return":
		f.result(m, arg)
		return true
	case "drop":
		f.send(worker.Log{ID: m.ID, Level: "log", Text: "last", SkippedLines: 1 << 63, SkippedBytes: 1 << 63})
	case "throw":
		f.fault(m, arg)
		return true
	case "empty":
		f.send(worker.Result{ID: m.ID})
		return true
	case "both":
		f.send(worker.Result{ID: m.ID, Value: []byte("1"), Error: []byte(`{"type":"exception","message":""}`)})
		return true
	case "call", "calls":
		return f.toolCall(m, verb, arg)
	case "callnumber":
		f.send(worker.ToolCall{ID: m.ID, Call: uint64(number), Provider: "tools", Path: []string{"echo"}, Args: []byte("[]")})
	case "callargs":
		f.send(worker.ToolCall{ID: m.ID, Call: 1, Provider: "tools", Path: []string{"echo"}, Args: []byte(arg)})
	case "fire": // calls without waiting
		for range number {
			f.calls++
			f.send(worker.ToolCall{ID: m.ID, Call: f.calls, Provider: "tools", Path: []string{"echo"}, Args: []byte("[1]")})
		}
	case "big": // calls with so many bytes, and waits
		args := `["` + strings.Repeat("x", number) + `"]`
		return f.toolCall(m, "call", "tools.echo "+args)
	case "resultfor":
		f.send(worker.Result{ID: m.ID + uint64(number), Value: []byte("1")})
		f.hang()
	case "logfor":
		f.send(worker.Log{ID: m.ID + uint64(number), Level: "log", Text: "x"})
		f.hang()
	case "beatfor":
		f.send(worker.Heartbeat{ID: m.ID + uint64(number)})
		f.hang()
	case "beat": // for the one of that many before, or after
		f.send(worker.Heartbeat{ID: m.ID - uint64(number)})
	case "beats":
		for range number {
			f.send(worker.Heartbeat{ID: m.ID})
		}
		f.hang()
	case "again": // a second result
		f.result(m, "1")
		f.result(m, "2")
		f.hang()
	case "ready":
		f.send(worker.Ready{})
		f.hang()
	case "hello":
		f.send(worker.Hello{Version: worker.Version})
		f.hang()
	case "raw":
		b, _ := hex.DecodeString(arg)
		_ = f.conn.Flush()
		_, _ = f.raw.Write(b)
		f.hang()
	case "rawexit":
		b, _ := hex.DecodeString(arg)
		_ = f.conn.Flush()
		_, _ = f.raw.Write(b)
		f.leave(4)
	case "giant":
		f.result(m, `"`+strings.Repeat("x", number)+`"`)
		f.hang()
	case "close": // and go on
		_ = f.conn.Flush()
		signal.Ignore(syscall.SIGPIPE)
		f.mode = "stays"
		f.conn.Close()
		select {}
	case "stderr":
		fmt.Fprintln(os.Stderr, arg)
	case "exit":
		f.leave(number)
	case "word":
		typ, detail, _ := strings.Cut(arg, " ")
		f.send(worker.LastWord{ID: m.ID, Type: typ, Detail: detail})
	case "signal": // as the first process of a pid namespace may
		_ = f.conn.Flush()
		if arg != "SIGKILL" {
			f.exit(128 + int(unix.SignalNum(arg)))
		}
		_ = unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: 1, Max: 1}) // the kernel kills it after a second
		for {
			number++
		}
	case "inspect":
		f.result(m, inspect())
		return true
	case "restore": // slowly
		f.result(m, "1")
		time.Sleep(span)
		return true
	case "pid": // its number outside, where /proc is from
		pid, _ := os.Readlink("/proc/self")
		f.result(m, pid)
		return true
	case "request":
		text, _ := json.Marshal(m)
		f.result(m, string(text))
		return true
	case "retain", "retain-error": // so many handles, and a value
		return f.retain(m, verb, arg)
	case "fetch", "fetchraw", "fire-fetch", "read", "readraw", "give-up", "text":
		return f.fetchStep(m, verb, arg)
	default:
		f.fault(m, fmt.Sprintf(`{"type":"syntax","message":"no verb %s"}`, verb))
		return true
	}
	return false
}

// hang does nothing for ever; inside a process of many it ends with its channel.
func (f *fake) hang() {
	for range f.inbox {
	}
	f.leave(0)
}

func (f *fake) awaitCancel(m worker.Execute) {
	for msg := range f.inbox {
		if c, ok := msg.(worker.Cancel); ok && c.ID == m.ID {
			text, _ := json.Marshal(protocol.Errorf(protocol.Cancelled, "%s", c.Reason))
			f.fault(m, string(text))
			return
		}
	}
	f.leave(0)
}

// toolCall calls "provider.name args", waits for the answer, and for call ends with it.
func (f *fake) toolCall(m worker.Execute, verb, arg string) bool {
	tool, args, _ := strings.Cut(arg, " ")
	path := strings.Split(tool, ".")
	f.calls++
	f.send(worker.ToolCall{ID: m.ID, Call: f.calls, Provider: path[0], Path: path[1:], Args: []byte(args)})
	for msg := range f.inbox {
		switch msg := msg.(type) {
		case worker.ToolResult:
			if msg.ID != m.ID || msg.Call != f.calls {
				continue
			}
			if verb == "calls" && msg.OK {
				return false
			}
			if msg.OK {
				f.result(m, string(msg.Value))
			} else {
				f.fault(m, `{"type":"exception","message":"tool","cause":`+string(msg.Value)+`}`)
			}
			return true
		case worker.Cancel:
			text, _ := json.Marshal(protocol.Errorf(protocol.Cancelled, "%s", msg.Reason))
			f.fault(m, string(text))
			return true
		}
	}
	f.leave(0)
	return true
}

// inspection is what a worker finds around itself.
type inspection struct {
	FDs       map[string]string `json:"fds"`
	Env       []string          `json:"env"`
	Dir       string            `json:"dir"`
	Args      []string          `json:"args"`
	OwnGroup  bool              `json:"ownGroup"`
	Snapshot  string            `json:"snapshot"`
	CanWrite  bool              `json:"canWrite"`
	CoreLimit uint64            `json:"coreLimit"`
}

func inspect() string {
	i := inspection{FDs: map[string]string{}, Env: os.Environ(), Args: os.Args}
	i.Dir, _ = os.Getwd()
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			i.FDs[e.Name()] = target
		}
	}
	i.OwnGroup = syscall.Getpgrp() == os.Getpid()
	blob := make([]byte, 100)
	n, _ := unix.Pread(snapshotFD, blob, 0)
	i.Snapshot = string(blob[:n])
	f, err := os.OpenFile("/proc/self/fd/4", os.O_RDWR, 0)
	if err == nil {
		_, err = f.Write([]byte("x"))
		i.CanWrite = err == nil
	}
	var limit unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_CORE, &limit)
	i.CoreLimit = limit.Max
	text, _ := json.Marshal(i)
	return string(text)
}
