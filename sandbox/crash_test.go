package sandbox_test

import (
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/worker"
)

// fault makes a worker of the test build die as name says, in the second program that it runs, and returns how.
func fault(t *testing.T, name, code string) (e end, status int, stderr string) {
	t.Helper()
	p := ready(t, testbin.FaultyWorker(t))
	if e := p.run(job{code: "return 1"}); e.value != "1" {
		t.Fatalf("the program before: %s", textOf(e))
	}
	e = p.run(job{code: "console.log('before'); console.log('fault:" + name + "');" + code})
	status = p.exit()
	if len(e.logs) < 2 || e.logs[0] != "log before" {
		t.Errorf("logs %q", e.logs)
	}
	return e, status, p.stderr.String()
}

// TestNativeFaults: a native fault ends the process by its own signal and leaves a report with the stack.
func TestNativeFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		stack  []string // has these functions, from the inside out
	}{
		{"segv", syscall.SIGSEGV, []string{"fault_segv", "_Cfunc_fault_segv"}},
		{"engine", syscall.SIGSEGV, []string{"v8::internal::StackGuard::", "fault_engine"}},
		{"call", syscall.SIGSEGV, []string{"fault_call"}},
		{"bus", syscall.SIGBUS, []string{"fault_bus"}},
		{"fpe", syscall.SIGFPE, []string{"fault_fpe"}},
		{"ill", syscall.SIGILL, []string{"fault_ill"}},
		{"trap", syscall.SIGTRAP, []string{"fault_trap"}},
		{"abort", syscall.SIGABRT, []string{"abort", "fault_abort"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "fpe" && runtime.GOARCH != "amd64" {
				t.Skip("only amd64 faults at a division by zero")
			}
			_, status, stderr := fault(t, c.name, "")
			if status != -int(c.signal) {
				t.Errorf("exit status %d, want %d", status, -int(c.signal))
			}
			isReport(t, stderr)
			head, stack, _ := strings.Cut(stderr, "\n")
			if !strings.HasPrefix(head, "executor-worker: "+signalNames[c.signal]) || !strings.HasSuffix(head, " in execution 2") {
				t.Errorf("the report begins with %q", head)
			}
			inOrder(t, stack, c.stack)
		})
	}
}

var signalNames = map[syscall.Signal]string{
	syscall.SIGSEGV: "SIGSEGV", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE", syscall.SIGILL: "SIGILL", syscall.SIGTRAP: "SIGTRAP", syscall.SIGABRT: "SIGABRT",
}

var (
	reportHead  = regexp.MustCompile(`^executor-worker: SIG[A-Z]+( near null \(0x[0-9a-f]+\))?( at executor-worker\+0x[0-9a-f]+)? in execution \d+$`)
	reportFrame = regexp.MustCompile(`^  #\d+ (\[generated code\]|\[no code\]|([^"]{1,160}\+0x[0-9a-f]+ )?\([\w.+-]+\+0x[0-9a-f]+\))$`)
)

// isReport tells that a report is whole and has nothing else in it.
func isReport(t *testing.T, report string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(report, "\n"), "\n")
	if !reportHead.MatchString(lines[0]) {
		t.Errorf("a report begins with %q", lines[0])
	}
	for _, line := range lines[1:] {
		if !reportFrame.MatchString(line) {
			t.Errorf("a report has the line %q", line)
		}
	}
	if len(lines) < 2 || len(lines) > 65 || len(report) > 8<<10 {
		t.Errorf("a report has %d lines and %d bytes", len(lines), len(report))
	}
	t.Log(report)
}

func inOrder(t *testing.T, stack string, functions []string) {
	t.Helper()
	rest := stack
	for _, f := range functions {
		_, after, ok := strings.Cut(rest, f)
		if !ok {
			t.Errorf("%s is not in its place in\n%s", f, stack)
			return
		}
		rest = after
	}
}

// TestFailedChecksLeaveAStack: V8 ends the process through a last word, not by a signal.
func TestFailedChecksLeaveAStack(t *testing.T) {
	e, status, stderr := fault(t, "check", "")
	if status != worker.ExitFatal || e.last == nil || e.last.Type != "worker_crashed" || strings.Contains(e.last.Detail, "fault_check") {
		t.Errorf("exit status %d, last word %+v", status, e.last)
	}
	inOrder(t, stderr, []string{"executor-worker: worker_crashed: ", "Check failed: false.\n", "V8_Fatal", "fault_check"})
}

// TestReportsHaveNothingOfTheGuest: the fault comes while a program with a secret in its names, strings, numbers and
// stack runs in generated code.
func TestReportsHaveNothingOfTheGuest(t *testing.T) {
	code := `
function CANARY_f(CANARY_a, n) { if (n > 0) return CANARY_f(CANARY_a, n - 1) + 1; for (let s = 0;; s = (s + CANARY_a.length) | 0) CANARY_a[s & 7] = 0x43414e41; }
CANARY_f(new Int32Array(8), 3000)`
	_, status, stderr := fault(t, "later", code)
	if status != -int(syscall.SIGILL) {
		t.Errorf("exit status %d", status)
	}
	isReport(t, stderr)
	if !strings.Contains(stderr, "\n  #0 [generated code]\n  #1 ") || strings.Count(stderr, "\n") != 65 {
		t.Errorf("the stack is not that of a deep program:\n%s", stderr)
	}
	for _, secret := range []string{"CANARY", "43414e41", "main.js"} {
		if strings.Contains(stderr, secret) {
			t.Errorf("%q is in\n%s", secret, stderr)
		}
	}
}

// TestGeneratedCodeIsWalkedThrough: the stack of a fault below JavaScript goes on to those who called the program.
func TestGeneratedCodeIsWalkedThrough(t *testing.T) {
	_, _, stderr := fault(t, "later", "for(;;);")
	isReport(t, stderr)
	inOrder(t, stderr, []string{"[generated code]", "Builtins_JSEntry", "v8::internal::", "ex_"})
}

// TestFaultsOfGoRemainGos: and other ways to end leave no report.
func TestFaultsOfGoRemainGos(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		stderr string
	}{
		{"nil", 2, "panic: runtime error: invalid memory address or nil pointer dereference"},
		{"panic", 2, "panic: fault"},
		{"exit", 3, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, status, stderr := fault(t, c.name, "")
			if status != c.status || !strings.HasPrefix(stderr, c.stderr) || strings.Contains(stderr, "executor-worker: ") || (c.stderr == "" && stderr != "") {
				t.Errorf("exit status %d, standard error:\n%s", status, stderr)
			}
			if c.stderr != "" && !strings.Contains(stderr, "goroutine ") {
				t.Errorf("no trace of Go:\n%s", stderr)
			}
		})
	}
}
