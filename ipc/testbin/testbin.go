// Package testbin gives tests the real binaries, as users run them, and what they ask of processes. Only tests import it.
//
// `make test` builds them once and names their folder in EXECUTORD_TEST_BIN. Without that variable each is built when a
// test process first asks for it, and Main removes it. Any goroutine may call.
package testbin

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Variable names the environment variable with the folder of ready binaries.
const Variable = "EXECUTORD_TEST_BIN"

// Worker is the path of the worker that operators get.
func Worker(tb testing.TB) string { return worker.get(tb) }

// FaultyWorker is the path of a worker that dies on command, as when a program prints "fault:segv"; the names are in
// sandbox/faults_on.go.
func FaultyWorker(tb testing.TB) string { return faultyWorker.get(tb) }

// Executord is the path of the service.
func Executord(tb testing.TB) string { return executord.get(tb) }

// Executorctl is the path of the command line.
func Executorctl(tb testing.TB) string { return executorctl.get(tb) }

// Alive tells whether a process runs. One that has ended may stay a zombie, for as long as its parent or init likes.
func Alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	state := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
	return !bytes.HasPrefix(state, []byte("Z")) && !bytes.HasPrefix(state, []byte("X"))
}

// Main runs the tests of a package and removes what was built for them. Call it from TestMain and exit with its result.
func Main(m *testing.M) int {
	defer func() {
		if dir, err := buildDir(); err == nil && os.Getenv(Variable) == "" {
			_ = os.RemoveAll(dir)
		}
	}()
	return m.Run()
}

// MainInPath is Main for packages whose examples look for the worker as users' programs do: it is in PATH.
func MainInPath(m *testing.M) int {
	path, err := worker.path()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.Setenv("PATH", filepath.Dir(path)+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return Main(m)
}

type binary struct {
	name, pkg, tags, cgo string

	once  sync.Once
	found string
	err   error
}

var (
	worker       = binary{name: "executor-worker", pkg: "executor-worker", cgo: "1"}
	faultyWorker = binary{name: "executor-worker-faulty", pkg: "executor-worker", tags: "executor_faults", cgo: "1"}
	executord    = binary{name: "executord", pkg: "executord", cgo: "0"}
	executorctl  = binary{name: "executorctl", pkg: "executorctl", cgo: "0"}
)

// buildDir is the folder of the binaries.
var buildDir = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(Variable); dir != "" {
		return filepath.Abs(dir)
	}
	return os.MkdirTemp("", "executord-test-")
})

func (b *binary) get(tb testing.TB) string {
	tb.Helper()
	path, err := b.path()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

func (b *binary) path() (string, error) {
	b.once.Do(func() { b.found, b.err = b.find() })
	return b.found, b.err
}

func (b *binary) find() (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, b.name)
	if os.Getenv(Variable) != "" {
		_, err := os.Stat(path)
		return path, err
	}
	cmd := exec.Command("go", "build", "-tags", b.tags, "-o", path, "github.com/executord/executord/cmd/"+b.pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+b.cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build %s: %w\n%s", b.name, err, out)
	}
	return path, nil
}
