package packaging

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFailedOnce has .ci/twice run a command that prints what go test would, and sees what is asked again and what comes of it.
func TestFailedOnce(t *testing.T) {
	const failed = "--- FAIL: TestA (0.10s)\n    a_test.go:1: late\n--- FAIL: TestB (0.10s)\nFAIL\nFAIL\tgithub.com/x/y\t0.2s\nok  \tgithub.com/x/z\t0.1s\nFAIL\n"
	for name, c := range map[string]struct {
		first         string // what the first run prints before it fails
		args          string
		second        int // how the second ends
		status        int
		asked, output string
	}{
		"passes then":    {failed, "go test -race -coverprofile=c ./...", 0, 0, "go test -race -count=1 -run ^(TestA|TestB)$ github.com/x/y", "failed once, and not by itself: TestA TestB github.com/x/y"},
		"fails again":    {failed, "go test -race ./...", 1, 1, "go test -race -count=1 -run ^(TestA|TestB)$ github.com/x/y", "--- FAILED ONCE: TestA"},
		"in a box":       {"=== RUN   TestA\n--- FAIL: TestA (0.10s)\nFAIL\n", "box nspawn", 0, 0, "box nspawn -test.run=^(TestA)$", "TestA"},
		"race":           {"WARNING: DATA RACE\n" + failed, "go test ./...", 0, 1, "", "--- FAIL: TestB"},
		"panic":          {"panic: oh\n" + failed, "go test ./...", 0, 1, "", "panic: oh"},
		"counterexample": {"    a_test.go:9: [rapid] failed after 3 tests\n" + failed, "go test ./...", 0, 1, "", "[rapid] failed"},
		"another":        {"    a_test.go:9: [rapid] flaky test, can not reproduce a failure\n" + failed, "go test ./...", 0, 1, "", "[rapid] flaky"},
		"no test":        {failed + "FAIL\tgithub.com/x/w [build failed]\n", "go test ./...", 0, 1, "", "build failed"},
		"nothing said":   {"oh\n", "go test ./...", 0, 1, "", "oh"},
		"many":           {strings.Repeat("--- FAIL: TestC (0.10s)\n", 6) + "FAIL\tgithub.com/x/y\t0.2s\n", "go test ./...", 0, 1, "", "--- FAIL: TestC"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{
				"first": c.first,
				"run":   "#!/bin/sh\nif [ -e began ]; then echo \"${0##*/} $*\" >>asked; exit \"$SECOND\"; fi\n: >began; cat first; exit 1\n",
			} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			args := strings.Fields(c.args)
			if err := os.Rename(filepath.Join(dir, "run"), filepath.Join(dir, args[0])); err != nil {
				t.Fatal(err)
			}
			script, err := filepath.Abs("../.ci/twice")
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(script, append([]string{filepath.Join(dir, args[0])}, args[1:]...)...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "SECOND="+string(rune('0'+c.second)))
			out, err := cmd.CombinedOutput()
			status := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				status = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			asked, _ := os.ReadFile(filepath.Join(dir, "asked"))
			if status != c.status || strings.TrimSpace(string(asked)) != c.asked || !strings.Contains(string(out), c.output) {
				t.Errorf("it ended with %d, asked %q, and printed\n%s", status, asked, out)
			}
		})
	}
}
