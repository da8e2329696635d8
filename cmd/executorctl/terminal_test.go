package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/executord/executord/daemon/admin"
	"github.com/executord/executord/ipc/testbin"
)

// console is a program on a terminal of its own.
type console struct {
	t   *testing.T
	tty *os.File // our end
	cmd *exec.Cmd

	mu   sync.Mutex
	said string
	news chan struct{}
	over chan struct{} // closed when there is no more output
}

// onTerminal runs a program on a terminal of 80 columns and 24 lines.
func onTerminal(t *testing.T, cmd *exec.Cmd) *console {
	t.Helper()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	c := &console{t: t, tty: tty, cmd: cmd, news: make(chan struct{}, 1), over: make(chan struct{})}
	go c.read()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = tty.Close()
	})
	return c
}

func (c *console) read() {
	defer close(c.over)
	buf := make([]byte, 4096)
	for {
		n, err := c.tty.Read(buf)
		c.mu.Lock()
		c.said += string(buf[:n])
		c.mu.Unlock()
		select {
		case c.news <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (c *console) output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said
}

// await waits until what was said matches, and returns the match.
func (c *console) await(pattern string) []string {
	c.t.Helper()
	wanted := regexp.MustCompile(pattern)
	deadline := time.After(30 * time.Second)
	for {
		if found := wanted.FindStringSubmatch(c.output()); found != nil {
			return found
		}
		select {
		case <-c.news:
		case <-deadline:
			c.t.Fatalf("no %q in\n%q", pattern, c.output())
		}
	}
}

func (c *console) enter(text string) {
	c.t.Helper()
	if _, err := c.tty.WriteString(text); err != nil {
		c.t.Fatal(err)
	}
}

// settings are those of the terminal.
func (c *console) settings() unix.Termios {
	c.t.Helper()
	s, err := unix.IoctlGetTermios(int(c.tty.Fd()), unix.TCGETS)
	if err != nil {
		c.t.Fatal(err)
	}
	return *s
}

// environment is that of a program on the terminal.
func (d *executord) environment(more ...string) []string {
	return append([]string{
		"PATH=" + filepath.Dir(testbin.Executorctl(d.t)) + ":" + os.Getenv("PATH"), "TERM=xterm-256color", "HOME=" + d.t.TempDir(), "LANG=C.UTF-8",
		"EXECUTORCTL_ADDRESS=" + d.desk, "EXECUTORD_ADDRESS=" + d.callers,
	}, more...)
}

func TestTopOnATerminal(t *testing.T) {
	d := startService(t)
	cmd := exec.Command(testbin.Executorctl(t), "top", "--interval", "100ms")
	cmd.Env = d.environment()
	c := onTerminal(t, cmd)
	before := c.settings()
	c.await(`Workers: 1`)
	c.await(`worker-1 .*idle`)
	id, outcome := d.endless()
	c.await(id + ` .*running`)
	if during := c.settings(); during.Lflag&unix.ECHO != 0 {
		t.Error("keys are shown")
	}
	d.good("execution", "cancel", id, "--reason", "seen enough")
	<-outcome
	c.await(`Ended badly of late[^$]*cancelled`)
	if err := pty.Setsize(c.tty, &pty.Winsize{Rows: 5, Cols: 30}); err != nil {
		t.Fatal(err)
	}
	c.await(regexp.QuoteMeta(home) + `([^\n]*\r\n){4}[^\n]*` + regexp.QuoteMeta(eraseLine+eraseBelow)) // five lines are all
	c.enter("x")
	c.enter("q")
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	c.await(regexp.QuoteMeta(leaveScreen) + `$`)
	if before != c.settings() {
		t.Error("the terminal is not as it was")
	}
}

// Ctrl-C ends it too, and NO_COLOR takes the colors.
func TestTopWithoutColors(t *testing.T) {
	d := startService(t)
	cmd := exec.Command(testbin.Executorctl(t), "top", "--interval", "100ms")
	cmd.Env = d.environment("NO_COLOR=1")
	c := onTerminal(t, cmd)
	c.await(`Workers: 1`)
	c.enter("\x03")
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	<-c.over
	if said := c.output(); regexp.MustCompile(`\x1b\[[0-9;]*m`).MatchString(said) {
		t.Errorf("it has colors: %q", said)
	}
}

// The service may go: the view says so, and is there again when the service is.
func TestTopOutlivesTheService(t *testing.T) {
	d := startService(t)
	cmd := exec.Command(testbin.Executorctl(t), "top", "--interval", "100ms")
	cmd.Env = d.environment()
	c := onTerminal(t, cmd)
	c.await(`Workers: 1`)
	_ = d.cmd.Process.Signal(os.Interrupt)
	_ = pty.Setsize(c.tty, &pty.Winsize{Rows: 40, Cols: 200})
	c.await(`cannot reach the service: nobody listens on`)
	c.enter("q")
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestTopView holds the screen against a file.
func TestTopView(t *testing.T) {
	then := time.Now().Add(-2 * time.Hour)
	now := look{at: time.Unix(1010, 0), Status: admin.Status{
		Version: "1.2", PID: 7, UptimeMs: 3.6e6, State: admin.State{Name: "maintenance", Reason: "new\ndisks"}, Sessions: 3,
		Queue: admin.Queue{Waiting: 2, Running: 1, ServiceMs: 12}, Warnings: []string{"something is wrong"},
		Totals: admin.Totals{Executions: 150, Overloaded: 20, Outcomes: map[string]uint64{"ok": 140, "exception": 10}},
	}}
	now.Workers = []admin.Worker{{Name: "worker-1", PID: 42, State: "running", AgeMs: 6e4, Executions: 12, RSSBytes: 77 << 20, Execution: "A-1"}}
	now.Executions = []admin.Execution{
		{ID: "A-1", State: "running", Since: then, Worker: "worker-1", Identity: "uid:0", Name: "a\x1b[2J.js", CPUMs: 1500, TotalMs: 2500, ToolCalls: 3},
		{ID: "A-2", State: "queued", Since: then, Identity: "token:app", Name: "b.js", QueueMs: 900},
	}
	now.Failed = []admin.Execution{{ID: "A-0", State: "ended", Outcome: "exception", Since: then, Identity: "uid:0", Name: "c.js", Message: "TypeError:\n" + strings.Repeat("long ", 40)}}
	before := look{at: time.Unix(1000, 0), Status: admin.Status{PID: 7, Totals: admin.Totals{Executions: 100, Overloaded: 15}}}
	s := stream{terminal: true}
	lines := view(s, before, now, "the service is gone", 100, 50)
	goldenText(t, "testdata/top.txt", []byte(strings.Join(lines, "\n")+"\n"))
	s.color = true
	if small := view(s, look{}, now, "", 20, 4); len(small) != 4 || slices.ContainsFunc(small, func(l string) bool {
		return len([]rune(regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(l, ""))) > 20
	}) {
		t.Errorf("%q", small)
	}
}

// shells are those that can complete, and how each takes the script.
var shells = map[string][]string{
	"bash": {"bash", "--norc", "--noprofile", "-i"},
	"zsh":  {"zsh", "-f", "-i"},
	"fish": {"fish", "--no-config", "-i"},
}

var taking = map[string]string{
	"bash": `PS1='$ '; bind 'set bell-style none'; source <(executorctl completion bash)`,
	"zsh":  `PS1='$ '; autoload -Uz compinit; compinit -u; source <(executorctl completion zsh)`,
	"fish": `executorctl completion fish | source`,
}

// TestCompletion has real shells complete real command lines.
func TestCompletion(t *testing.T) {
	d := startService(t)
	for shell, argv := range shells {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip(err)
			}
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Env = d.environment()
			cmd.Dir = t.TempDir()
			if err := os.WriteFile(filepath.Join(cmd.Dir, "program.js"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			c := onTerminal(t, cmd)
			c.enter(taking[shell] + "; echo READ''Y\n")
			c.await(`READY`)
			for i, line := range [][2]string{
				{"executorctl mainten", "executorctl maintenance"},
				{"executorctl maintenance en", "executorctl maintenance enter"},
				{"executorctl worker show w", "executorctl worker show worker-1"},
				{"executorctl run --embe", "executorctl run --embedded"},
				{"executorctl run --form scr", "executorctl run --form script"},
				{"executorctl run --form=scr", "executorctl run --form=script"},
				{"executorctl run --form script prog", "executorctl run --form script program.js"},
				{"executorctl event watch --kind worker_cr", "executorctl event watch --kind worker_crashed"},
				{"executorctl completion fi", "executorctl completion fish"},
			} {
				// The line is completed, and then given to echo: Ctrl-A goes to its beginning.
				mark := "DONE" + string(rune('A'+i))
				c.enter(line[0] + "\t\x01echo " + mark + ": \n")
				if got := c.await(`[^ ]` + mark + `: ([^\r\n\x1b]*)`)[1]; strings.TrimRight(got, " ") != line[1] {
					t.Errorf("%q becomes %q", line[0], got)
				}
			}
		})
	}
}

// TestCompletionKnowsEverything: what is there is offered, and what is hidden is not.
func TestCompletionKnowsEverything(t *testing.T) {
	for _, c := range []struct {
		words string
		want  []string
		not   string
	}{
		{"", []string{"run", "status", "top", "completion"}, "complete"},
		{"setting ", []string{"list"}, "run"},
		{"status --", []string{"--address", "--json", "--help"}, "--tools"},
		{"log-level ", []string{"debug", "error"}, ""},
		{"execution list --outcome ", []string{"ok", "failed", "cpu_timeout"}, ""},
		{"execution list --state ", []string{"queued", "running", "ended"}, ""},
		{"run --address x --form ", []string{"module"}, ""},
		{"run file.js ", nil, ""},
		{"run --name ", nil, ""},
		{"nonsense ", nil, ""},
		{"completion ", []string{"bash", "zsh", "fish"}, ""},
		{"status -- --", nil, "--json"},
	} {
		got := strings.Fields(call(t, nil, append([]string{"complete", "--"}, strings.Split(c.words, " ")...)...).out)
		for _, w := range c.want {
			if !slices.Contains(got, w) {
				t.Errorf("after %q: no %q in %q", c.words, w, got)
			}
		}
		if c.want == nil && c.words != "nonsense " && len(got) > 0 || c.not != "" && slices.Contains(got, c.not) {
			t.Errorf("after %q: %q", c.words, got)
		}
	}
	if got := call(t, nil, "complete", "--describe", "--", "run", "--fo"); got.out != "--form\tWhat the text is: auto, module, function or script\n" {
		t.Errorf("%q", got.out)
	}
}
