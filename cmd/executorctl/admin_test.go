package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/executord/executord/daemon/admin"
	"github.com/executord/executord/ipc/pagetest"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

var update = flag.Bool("update", false, "write the files of testdata and the man page as they should be")

// executord is a running service.
type executord struct {
	t             *testing.T
	callers, desk string // addresses
	cmd           *exec.Cmd
}

// startService runs the real service, with one worker.
func startService(t *testing.T, flags ...string) *executord {
	t.Helper()
	dir := t.TempDir()
	d := &executord{t: t, callers: "unix:" + filepath.Join(dir, "s"), desk: "unix:" + filepath.Join(dir, "admin.sock")}
	args := append([]string{"--listen", d.callers, "--worker-binary", testbin.Worker(t), "--workers", "1", "--spare-workers", "0"}, flags...)
	d.cmd = exec.Command(testbin.Executord(t), args...)
	out, err := d.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for said := bufio.NewScanner(out); said.Scan(); {
			if strings.Contains(said.Text(), "event=opened") {
				close(ready)
			}
		}
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		_ = d.cmd.Wait()
	})
	select {
	case <-ready:
	case <-ended:
		t.Fatal("the service did not start")
	}
	return d
}

// ctl runs a command line in this process against the admin socket.
func (d *executord) ctl(args ...string) result { return d.with(nil, args...) }

func (d *executord) with(change func(*world), args ...string) result {
	d.t.Helper()
	return call(d.t, func(w *world) {
		w.env = func(name string) string {
			return map[string]string{"EXECUTORCTL_ADDRESS": d.desk, "EXECUTORD_ADDRESS": d.callers}[name]
		}
		if change != nil {
			change(w)
		}
	}, args...)
}

// good wants success, and returns what was printed.
func (d *executord) good(args ...string) string {
	d.t.Helper()
	got := d.ctl(args...)
	if got.status != 0 || got.err != "" {
		d.t.Fatalf("%q: %+v", args, got)
	}
	return got.out
}

// endless begins a program that does not end, and waits until it runs.
func (d *executord) endless() (id string, outcome <-chan result) {
	d.t.Helper()
	ended := make(chan result, 1)
	go func() {
		ended <- d.with(stdin("for (;;);"), "run", "-", "--name", "endless.js", "--cpu", "60s", "--wall", "60s")
	}()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var list admin.ExecutionList
		if err := json.Unmarshal([]byte(d.good("execution", "list", "--state", "running", "--json")), &list); err != nil {
			d.t.Fatal(err)
		}
		if len(list.Executions) == 1 {
			return list.Executions[0].ID, ended
		}
	}
	d.t.Fatal("the program does not run")
	return "", nil
}

// leaf finds a command by its words.
func leaf(words string) *kong.Node {
	node := grammar(&world{out: stream{Writer: new(bytes.Buffer)}, err: stream{Writer: new(bytes.Buffer)}}).Model.Node
	for _, word := range strings.Fields(words) {
		at := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word })
		if at < 0 {
			return nil
		}
		node = node.Children[at]
	}
	if !node.Leaf() {
		return nil
	}
	return node
}

// TestEveryRouteHasItsCommand: what can be done over HTTP can be done from the terminal.
func TestEveryRouteHasItsCommand(t *testing.T) {
	for _, to := range admin.Routes() {
		node := leaf(to.Command)
		if node == nil {
			t.Errorf("%s %s has no command %q", to.Method, to.Path, to.Command)
			continue
		}
		var flags []string
		for _, f := range node.Flags {
			flags = append(flags, f.Name)
		}
		if _, text := to.Out.(admin.Text); !text && !slices.Contains(flags, "json") || !slices.Contains(flags, "address") {
			t.Errorf("%q has the flags %q", to.Command, flags)
		}
	}
}

// dynamic are the objects whose names are data.
var dynamic = map[string]bool{"identities": true, "outcomes": true, "limitsReached": true, "endedBy": true}

// shape replaces values by their types.
func shape(v any, data bool) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for name, x := range v {
			if data {
				m["*"] = shape(x, false)
			} else {
				m[name] = shape(x, dynamic[name])
				if name == "warnings" { // what is missing depends on the machine
					m[name] = []any{"text"}
				}
			}
		}
		return m
	case []any:
		all := map[string]any{}
		for _, x := range v {
			object, is := shape(x, false).(map[string]any)
			if !is {
				return []any{shape(v[0], false)}
			}
			for name, one := range object {
				all[name] = one
			}
		}
		if len(all) == 0 {
			return []any{}
		}
		return []any{all}
	case string:
		return "text"
	case float64:
		return "number"
	case bool:
		return "true or false"
	}
	return nil
}

// TestJSONIsStable holds the fields of what --json prints against files. Scripts read them: what is there stays.
func TestJSONIsStable(t *testing.T) {
	d := startService(t)
	d.with(stdin("console.log('x'); await 0; throw new Error('no')"), "run", "-")
	id, outcome := d.endless()
	for _, args := range []string{
		"status", "setting list", "worker list", "worker show worker-1", "execution list", "execution show " + id, "session list",
		"maintenance show", "log-level", "reload", "top", "event watch --all --no-follow --kind=execution_failed", "version",
		"execution cancel " + id, "check", "maintenance enter --reason=x", "maintenance leave", "worker retire worker-1",
	} {
		words := strings.Fields(args)
		name := words[0]
		if len(words) > 1 && !strings.HasPrefix(words[1], "-") {
			name += "-" + words[1]
		}
		t.Run(name, func(t *testing.T) {
			out := d.good(append(words, "--json")...)
			if strings.Count(out, "\n") != 1 {
				t.Errorf("not one line: %s", out)
			}
			var v any
			if err := json.Unmarshal([]byte(out), &v); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			golden(t, "testdata/json/"+name+".json", shape(v, false))
		})
		if strings.HasPrefix(args, "execution cancel") {
			<-outcome
		}
	}
}

// golden compares v with a file.
func golden(t *testing.T, file string, v any) {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	goldenText(t, file, append(text, '\n'))
}

// goldenText compares a text with a file, which -update writes.
func goldenText(t *testing.T, file string, text []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	is, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	if !bytes.Equal(is, text) {
		test, _, _ := strings.Cut(t.Name(), "/")
		t.Errorf("%s is not as it should be: run go test ./cmd/executorctl -run %s -update, and read the diff\n%s",
			file, test, pagetest.FirstDifference(string(is), string(text)))
	}
}

// TestTables: what people read has what they look for, and no colors where nobody looks.
func TestTables(t *testing.T) {
	d := startService(t)
	d.with(stdin("console.log('about to fail'); await 0; null.x"), "run", "-", "--name", "bad.js")
	id, outcome := d.endless()
	for _, c := range []struct {
		args string
		want []string
	}{
		{"status", []string{"executord ", ": ready, pid ", "workers      0 idle, 1 running", "executions   2 ended: 1 exception, 1 ok", "sessions     1", "isolation    process"}},
		{"setting list", []string{"SETTING", "workers ", " 1 ", " flag ", "\nqueue-timeout "}},
		{"setting list --changed", []string{"spare-workers "}},
		{"worker list", []string{"WORKER    PID", "worker-1  ", "running", id}},
		{"worker show worker-1", []string{"worker     worker-1", "engine     ", "execution  " + id}},
		{"execution list", []string{"EXECUTION", id + "  running", "exception", "endless.js", "bad.js", "uid:"}},
		{"execution list --outcome failed", []string{"bad.js"}},
		{"execution show " + id, []string{"program      endless.js", "state        running for ", "limits       {\"cpuMs\":60000"}},
		{"session list", []string{"SESSION", "open", "uid:"}},
		{"maintenance show", []string{"not in maintenance\n"}},
		{"event watch --after=0 --no-follow", []string{"worker_ready worker-1, pid "}},
		{"event watch --all --no-follow", []string{"worker_ready worker-1, pid ", "execution_failed worker-1, exception, execution "}},
		{"log-level", []string{"info\n"}},
		{"reload", []string{"nothing has changed\n"}},
		{"metrics", []string{"# TYPE executord_"}},
		{"openapi", []string{`"openapi": "3.1.0"`}},
		{"version", []string{"executorctl "}},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := d.good(strings.Fields(c.args)...)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got)
				}
			}
			if strings.Contains(got, "\x1b") {
				t.Errorf("it has colors: %q", got)
			}
		})
	}
	if got := d.good("execution", "list", "--outcome", "failed"); strings.Contains(got, "endless.js") {
		t.Errorf("the filter lets through\n%s", got)
	}
	if got := d.with(terminal, "worker", "list"); !strings.Contains(got.out, "\x1b[32mrunning\x1b[0m") || !strings.Contains(got.out, "worker-1  ") {
		t.Errorf("on a terminal: %+v", got)
	}
	if out := d.good("execution", "cancel", id, "--reason", "enough of it"); !strings.Contains(out, id) {
		t.Errorf("cancel: %s", out)
	}
	if got := <-outcome; got.status != 20 || !strings.Contains(got.err, "cancelled by the operator") || !strings.Contains(got.err, "enough of it") {
		t.Errorf("the caller is told %+v", got)
	}
}

// TestFindWhyAnExecutionFailed: from the list to the reason and the last lines.
func TestFindWhyAnExecutionFailed(t *testing.T) {
	d := startService(t)
	d.with(stdin("console.log('about to \\x1b[31mfail'); await 0; null.x"), "run", "-", "--name", "bad\x1b]0;x\x07.js")
	d.with(stdin("await 0; null.x"), "run", "-", "--name", "bad.js")
	var list admin.ExecutionList
	if err := json.Unmarshal([]byte(d.good("execution", "list", "--outcome=failed", "--json")), &list); err != nil || len(list.Executions) != 1 {
		t.Fatalf("%+v, %v", list, err) // the first is refused for its name
	}
	got := d.good("execution", "show", list.Executions[0].ID)
	for _, want := range []string{"exception, ", "message      TypeError: ", "ended by     engine", "used         "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	d.with(stdin("console.log('about to \\x1b[31mfail\\nnow'); await 0; throw new Error('a\\x1b[0mb\\nc')"), "run", "-", "--name", "worse.js")
	if err := json.Unmarshal([]byte(d.good("execution", "list", "--limit=1", "--json")), &list); err != nil || list.Omitted != 2 { // with the check of the start
		t.Fatalf("%+v, %v", list, err)
	}
	shown := d.with(terminal, "execution", "show", list.Executions[0].ID)
	if !strings.Contains(shown.out, `about to \x1b[31mfail`) || !strings.Contains(shown.out, `Error: a\x1b[0mb c`) {
		t.Errorf("a program can write to the operator's terminal: %q", shown.out)
	}
}

func TestMaintenanceFromTheTerminal(t *testing.T) {
	d := startService(t)
	out := d.good("maintenance", "enter", "--reason", "new disks")
	if !strings.Contains(out, "in maintenance: new disks\n") || !strings.Contains(out, "by     ") || !strings.Contains(out, "until a restart") {
		t.Errorf("%s", out)
	}
	if got := d.with(stdin("1"), "run", "-"); got.status != 46 || !strings.Contains(got.err, "new disks") {
		t.Errorf("a caller: %+v", got)
	}
	if out := d.good("status"); !strings.Contains(out, ": maintenance, ") || !strings.Contains(out, ": new disks (") {
		t.Errorf("%s", out)
	}
	if got := d.ctl("check"); got.status != exitCheck || !strings.Contains(got.out, "FAILED connect: ") || !strings.Contains(got.out, "leave maintenance") || got.err != "" {
		t.Errorf("%+v", got)
	}
	if out := d.good("maintenance", "leave"); out != "not in maintenance\n" {
		t.Errorf("%s", out)
	}
	if out := d.good("check"); strings.Count(out, "ok     ") != 10 {
		t.Errorf("%s", out)
	}
	if got := d.ctl("maintenance", "enter"); got.status != 1 || !strings.Contains(got.err, "--reason") {
		t.Errorf("%+v", got)
	}
	if out := d.good("log-level", "debug"); out != "debug\n" {
		t.Errorf("%s", out)
	}
}

// TestAdminExitStatuses: what scripts decide by.
func TestAdminExitStatuses(t *testing.T) {
	d := startService(t)
	nowhere := "unix:" + filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"status", "--address", nowhere}, exitUnreachable, `nobody listens on ` + nowhere + `; start it with "executord --admin-listen ` + nowhere},
		{[]string{"event", "watch", "--address", nowhere}, exitUnreachable, "nobody listens on"},
		{[]string{"page", "--address", nowhere}, exitUnreachable, "nobody listens on"},
		{[]string{"top", "--json", "--address", nowhere}, exitUnreachable, "nobody listens on"},
		{[]string{"status", "--address", "tcp://127.0.0.1:1"}, exitOther, "must be unix:"},
		{[]string{"status", "--address", d.callers}, 54, "is " + d.callers + " the socket of the operator"},
		{[]string{"worker", "show", "worker-99"}, 40, "invalid_params: worker: there is no worker"},
		{[]string{"execution", "cancel", "nothing"}, 40, "invalid_params: execution: there is no execution"},
		{[]string{"execution", "list", "--state", "idle"}, exitOther, "--state"},
		{[]string{"execution", "list", "--outcome", "splendid"}, 40, "outcome"},
		{[]string{"event", "watch", "--kind", "nothing"}, 40, "kind"},
		{[]string{"log-level", "loud"}, 40, "level"},
		{[]string{"top"}, exitOther, "must be a terminal"},
		{[]string{"worker"}, exitOther, "list"},
		{[]string{"completion", "tcsh"}, exitOther, "bash"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			if got := d.ctl(c.args...); got.status != c.status || !strings.Contains(got.err, c.want) || got.out != "" {
				t.Errorf("%+v, want status %d with %q", got, c.status, c.want)
			}
		})
	}
	help := strings.Join(strings.Fields(call(t, nil, "--help").out), " ")
	for _, want := range []string{"3 when no service answers", "4 when check found something wrong", "130 when interrupted"} {
		if !strings.Contains(help, want) {
			t.Errorf("help does not say %q", want)
		}
	}
	installed := call(t, nil, "status")
	if _, err := os.Stat(defaultAdminSocket); err != nil && (installed.status != exitUnreachable || !strings.Contains(installed.err, `"systemctl start executord"`)) {
		t.Errorf("the usual socket: %+v", installed)
	}
}

// L5: an unknown letter in a group of short flags is named, also behind one that is known.
func TestL5UnknownLetterBehindAKnownOne(t *testing.T) {
	for _, args := range [][]string{{"status", "-hz"}, {"worker", "list", "-zh"}} {
		if got := call(t, nil, args...); got.status != 1 || !strings.Contains(got.err, "-z") || got.out != "" {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// L1: help of every command is a success.
func TestL1HelpOfEveryCommand(t *testing.T) {
	var walk func(n *kong.Node, words []string)
	walk = func(n *kong.Node, words []string) {
		if got := call(t, nil, append(words, "--help")...); got.status != 0 || got.err != "" || !strings.Contains(got.out, "Usage: executorctl") {
			t.Errorf("%q: %+v", words, got)
		}
		for _, child := range n.Children {
			walk(child, append(slices.Clone(words), child.Name))
		}
	}
	w := &world{out: stream{Writer: new(bytes.Buffer)}, err: stream{Writer: new(bytes.Buffer)}}
	walk(grammar(w).Model.Node, nil)
}

// L7: when the reader of a stream leaves, the command ends without a word.
func TestL7BrokenPipeOfAStreamIsQuiet(t *testing.T) {
	d := startService(t)
	for _, args := range []string{"event watch --all", "setting list", "metrics", "openapi"} {
		t.Run(args, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			script := fmt.Sprintf("%s %s --address %s | head -n 1", testbin.Executorctl(t), args, d.desk)
			if args == "event watch --all" { // it writes again when there is news
				script = fmt.Sprintf("{ %s; } & until %s worker retire worker-1 --address %s >/dev/null 2>&1; do sleep 0.01; done; wait", script, testbin.Executorctl(t), d.desk)
			}
			cmd := exec.CommandContext(ctx, "bash", "-c", script)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Run(); err != nil || errs.Len() > 0 || strings.Count(out.String(), "\n") != 1 {
				t.Errorf("%v\nout: %q\nerr: %q", err, out.String(), errs.String())
			}
		})
	}
}

// A stream that is interrupted has done its work.
func TestInterruptEndsAWatch(t *testing.T) {
	d := startService(t)
	cmd := exec.Command(testbin.Executorctl(t), "event", "watch", "--all", "--address", d.desk)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil || errs.Len() > 0 {
		t.Errorf("%v, %q", err, errs.String())
	}
}

// A typed error of the service has the exit status of its type, whatever command it is.
func TestTypesOfErrorsAreExitStatuses(t *testing.T) {
	for _, info := range protocol.Types() {
		w := &world{err: stream{Writer: new(bytes.Buffer)}}
		if got := complain(w, adminHint("unix:/x", protocol.Errorf(info.Type, "x"))); got != info.Exit {
			t.Errorf("%s has the status %d", info.Type, got)
		}
	}
}
