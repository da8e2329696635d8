package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/executord/executord/daemon/executor"
	"github.com/executord/executord/daemon/server"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

func TestMain(m *testing.M) { os.Exit(testbin.Main(m)) }

// result is what a command line did.
type result struct {
	status   int
	out, err string
}

// call runs a command line in this process.
func call(t *testing.T, change func(*world), args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	w := &world{
		in: strings.NewReader(""), out: stream{Writer: &out}, err: stream{Writer: &errs},
		env: func(string) string { return "" }, exists: func(string) bool { return false },
	}
	if change != nil {
		change(w)
	}
	status := execute(t.Context(), args, w)
	return result{status, out.String(), errs.String()}
}

func stdin(text string) func(*world) {
	return func(w *world) { w.in = strings.NewReader(text) }
}

func terminal(w *world) {
	w.out.terminal, w.err.terminal = true, true
	w.out.color, w.err.color = true, true
}

// service runs a service and returns its address.
func service(t *testing.T) string {
	t.Helper()
	p, err := executor.New(t.Context(), executor.Config{WorkerBinary: testbin.Worker(t), Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	s, err := server.New(p, server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve(ctx, l) }()
	t.Cleanup(func() { stop(); <-stopped })
	return "unix:" + path
}

func TestRun(t *testing.T) {
	address := service(t)
	cases := []struct {
		name, code string
		args       []string
		status     int
		out, err   string
	}{
		{"number", "6 * 7", nil, 0, "42\n", ""},
		{"string", "'a\\nb'", nil, 0, "a\nb\n", ""},
		{"undefined", "undefined", nil, 0, "", ""},
		{"tagged", "({a: 1n})", nil, 0, `{"a":{"@bigint":"1"}}` + "\n", ""},
		{"console", "console.log('x'); console.warn('y\\x1b[1m'); 1", nil, 0, "1\n", "log: x\nwarn: y\x1b[1m\n"},
		{"input", "(input) => input.n", []string{"--input", `{"n":5}`}, 0, "5\n", ""},
		{"form", "export default 3", []string{"--form", "module"}, 0, "3\n", ""},
		{
			"exception", "let a = 1;\n\tfoo(a);", nil, 10, "",
			"main.js:2:2: exception: ReferenceError: foo is not defined\n\tfoo(a);\n\t^\n    at main.js:2:2\n",
		},
		{"thrown value", "throw {code: 7}", nil, 10, "", "thrown: { code: 7 }\n"},
		{"syntax", "let x = ) + 1", nil, 11, "", "let x = ) + 1\n        ^\n"},
		{"module", "import 'nowhere'", nil, 12, "", "module:"},
		{"cpu", "for (;;);", []string{"--cpu", "50ms"}, 13, "", "cpu_timeout:"},
		{"wall", "await new Promise(r => setTimeout(r, 1e6))", []string{"--wall", "50ms"}, 14, "", "wall_timeout:"},
		{"deadlock", "await new Promise(() => {})", nil, 22, "", "deadlock:"},
		{"empty", "", nil, 41, "", "invalid_code"},
		{"bad input", "1", []string{"--input", "{"}, 40, "", "input"},
		{"zero limit", "1", []string{"--cpu", "0"}, 1, "", "--cpu"},
		{"limit without unit", "1", []string{"--wall", "5"}, 1, "", "--wall"},
		{"limit too fine", "1", []string{"--total", "1500us"}, 1, "", "--total"},
		{"zero heap", "1", []string{"--heap", "0"}, 1, "", "--heap"},
		{"unknown form", "1", []string{"--form", "poem"}, 1, "", "--form"},
		{"both places", "1", []string{"--embedded"}, 1, "", "together"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := call(t, stdin(tc.code), append([]string{"run", "-", "--address", address}, tc.args...)...)
			if got.status != tc.status || got.out != tc.out || !strings.Contains(got.err, tc.err) || tc.err == "" && got.err != "" {
				t.Errorf("status %d\nout: %q\nerr: %q\nwant %d\nout: %q\nerr: %q", got.status, got.out, got.err, tc.status, tc.out, tc.err)
			}
		})
	}
	t.Run("file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "mine.js")
		if err := os.WriteFile(path, []byte("null.x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := call(t, nil, "run", path, "--address", address); got.status != 10 || !strings.HasPrefix(got.err, "mine.js:1:") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("json", func(t *testing.T) {
		got := call(t, stdin("console.log('x'); throw new Error('y')"), "run", "-", "--json", "--address", address)
		var o protocol.Outcome
		if err := json.Unmarshal([]byte(got.out), &o); err != nil || got.status != 10 || o.Error.Type != protocol.Exception || len(o.Logs) != 1 {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("address from the environment", func(t *testing.T) {
		got := call(t, func(w *world) {
			stdin("1")(w)
			w.env = func(name string) string {
				if name == "EXECUTORD_ADDRESS" {
					return address
				}
				return ""
			}
		}, "run", "-")
		if got.status != 0 || got.out != "1\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("terminal", func(t *testing.T) {
		got := call(t, func(w *world) { terminal(w); stdin("console.log('a\\x1b]0;x\\x07'); ({m: new Map([[1, 2n]])})")(w) }, "run", "-", "--address", address)
		if got.out != "{ m: Map(1) { 1 => 2n } }\n" || got.err != "\x1b[2mlog:\x1b[0m a\\x1b]0;x\\x07\n" {
			t.Errorf("%q %q", got.out, got.err)
		}
	})
}

func TestEmbedded(t *testing.T) {
	args := []string{"run", "-", "--embedded", "--worker-binary", testbin.Worker(t)}
	if got := call(t, stdin("console.log(1); 2"), args...); got.status != 0 || got.out != "2\n" || got.err != "log: 1\n" {
		t.Errorf("%+v", got)
	}
	args[4] = filepath.Join(t.TempDir(), "none")
	if got := call(t, stdin("1"), args...); got.status != 1 || !strings.Contains(got.err, "cannot use worker binary") {
		t.Errorf("%+v", got)
	}
}

// TestNetwork: requests go where --network says.
func TestNetwork(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer web.Close()
	code := "(await fetch('" + web.URL + "')).text()"
	for _, c := range []struct {
		name, flags string
		status      int
		text        string
	}{
		{"none", "", 10, "there is no network here"},
		{"host", "--network=host", 0, "hello"},
		{"direct", "--network=direct --egress-allow=" + web.URL + " --egress-allow-private=127.0.0.1/32", 0, "hello"},
		{"direct to a private address", "--network=direct --egress-allow=" + web.URL, 10, "--egress-allow-private"},
		{"direct without a policy", "--network=direct", 40, "--egress-allow"},
		{"no such network", "--network=internet", 1, "none"},
		{"no pattern", "--network=direct --egress-allow=example.com", 1, "http://host[:port]"},
		{"no range", "--egress-allow=http://x --egress-allow-private=10", 1, "egress-allow-private"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"run", "-", "--embedded", "--worker-binary", testbin.Worker(t)}
			got := call(t, stdin(code), append(args, strings.Fields(c.flags)...)...)
			if got.status != c.status || !strings.Contains(got.out+got.err, c.text) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestNoService(t *testing.T) {
	address := "unix:" + filepath.Join(t.TempDir(), "none")
	got := call(t, stdin("1"), "run", "-", "--address", address)
	if got.status != exitUnreachable || !strings.Contains(got.err, address) || !strings.Contains(got.err, "executord --listen "+address) {
		t.Errorf("%+v", got)
	}
	if got := call(t, stdin("1"), "run", "-", "--address", "nonsense"); got.status != 1 || !strings.Contains(got.err, "must begin with unix:") {
		t.Errorf("%+v", got)
	}
}

// L1, L3: help is a success, whatever stands beside it.
func TestL3HelpSucceeds(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}, {}, {"run", "--help"}, {"ps", "a", "b", "--help"}, {"run", "a", "b", "--help"}, {"run", "--nope", "-h"}} {
		if got := call(t, nil, args...); got.status != 0 || !strings.Contains(got.out, "Usage: executorctl") || got.err != "" {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// L3: a wrong invocation has status 1 and not that of the parser.
func TestL3WrongInvocation(t *testing.T) {
	for _, args := range [][]string{{"ps"}, {"run"}, {"run", "a", "b"}, {"run", "a", "--nope"}, {"version", "x"}, {"run", "a", "--", "--help"}} {
		if got := call(t, nil, args...); got.status != 1 || got.err == "" || got.out != "" {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// L5: an unknown letter in a group of short flags is named.
func TestL5UnknownShortFlag(t *testing.T) {
	if got := call(t, nil, "run", "x", "-qz"); got.status != 1 || !strings.Contains(got.err, "-q") {
		t.Errorf("%+v", got)
	}
}

func TestHelpDocumentsEveryExitStatus(t *testing.T) {
	help := strings.Join(strings.Fields(call(t, nil, "--help").out), " ")
	for _, info := range protocol.Types() {
		if !strings.Contains(help, fmt.Sprintf("%d %s", info.Exit, info.Type)) {
			t.Errorf("help does not tell of %s", info.Type)
		}
	}
}

// Ctrl-C cancels the program and exits with the status of that.
func TestInterruptCancels(t *testing.T) {
	cmd := exec.Command(testbin.Executorctl(t), "run", "-", "--embedded", "--worker-binary", testbin.Worker(t))
	cmd.Stdin = strings.NewReader("console.log('begun'); for (;;);")
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := errs.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest := new(bytes.Buffer)
	_, _ = rest.ReadFrom(errs)
	_ = cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 20 || !strings.Contains(rest.String(), "cancelled") {
		t.Errorf("status %d, %q", status, rest)
	}
}

// L7: when the reader of the output leaves, the program ends without a word.
func TestL7BrokenPipeIsQuiet(t *testing.T) {
	cmd := exec.Command(testbin.Executorctl(t), "run", "-", "--embedded", "--worker-binary", testbin.Worker(t))
	cmd.Stdin = strings.NewReader("'x'.repeat(5e6)")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	_ = cmd.Wait()
	if errs.Len() > 0 {
		t.Errorf("it said %q", errs.String())
	}
}

func TestCommandToolsDieWithTheExecution(t *testing.T) {
	dir := t.TempDir()
	mark := filepath.Join(dir, "pid")
	tools := filepath.Join(dir, "tools.json")
	spec := fmt.Sprintf(`{"t":{"slow":{"command":["sh","-c","sleep 600 & echo $! > %s.new; mv %s.new %s; wait"]}}}`, mark, mark, mark)
	if err := os.WriteFile(tools, []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	code := "t.slow(); await new Promise(r => setTimeout(r, 1000)); 'left'"
	got := call(t, stdin(code), "run", "-", "--embedded", "--worker-binary", testbin.Worker(t), "--tools", tools)
	if got.out != "left\n" {
		t.Fatalf("%+v", got)
	}
	text, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	for stop := time.Now().Add(10 * time.Second); testbin.Alive(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(stop) {
			t.Fatalf("process %d outlived the execution", pid)
		}
	}
}

// TestUnreachableHoweverItFails: the exit status does not depend on how nobody answers.
func TestUnreachableHoweverItFails(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, true},
		{&net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}, true},
		{&net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}, true},
		{&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "x"}}, true},
		{context.DeadlineExceeded, true},
		{&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, false},
		{fmt.Errorf("%w; %w", protocol.Errorf(protocol.Draining, "stopping"), context.DeadlineExceeded), false},
		{protocol.Errorf(protocol.Internal, "no"), false},
		{context.Canceled, false},
	} {
		var nobody unreachable
		if err := hint("tcp://x:1", fmt.Errorf("cannot connect to x:1: %w", c.err)); errors.As(err, &nobody) != c.want {
			t.Errorf("%v became %v", c.err, err)
		}
	}
}
