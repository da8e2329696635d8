package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const workerPackage = "github.com/executord/executord/cmd/executor-worker"

// workerVariable names a worker that is there already, so that a job with several test runs builds it once.
const workerVariable = "EXECUTOR_WORKER"

// WorkerBinary builds the worker once in a test run and returns its path, or that in the variable EXECUTOR_WORKER. It
// fails the test when it cannot. The tests of a package that uses it must be run by Main.
func WorkerBinary(t testing.TB) string {
	t.Helper()
	path, err := buildWorker()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// buildDir is where WorkerBinary builds; Main removes it.
var buildDir string

var buildWorker = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(workerVariable); path != "" {
		return filepath.Abs(path)
	}
	dir, err := os.MkdirTemp("", "executor-worker-")
	if err != nil {
		return "", err
	}
	buildDir = dir
	path := filepath.Join(dir, "executor-worker")
	return path, Build(path, workerPackage, "CGO_ENABLED=1")
})

// Build builds the main package pkg of this module into path.
func Build(path, pkg string, env ...string) error {
	cmd := exec.Command("go", "build", "-o", path, pkg)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// Main runs the tests of a package and removes what WorkerBinary built. Call it from TestMain and exit with its result.
func Main(m *testing.M) int {
	defer func() {
		if buildDir != "" {
			_ = os.RemoveAll(buildDir)
		}
	}()
	return m.Run()
}

// sourceDir is a folder of this module's source.
func sourceDir(t testing.TB, pkg string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/executord/executord/"+pkg).Output()
	if err != nil {
		t.Fatalf("cannot find the source of %s: %v", pkg, err)
	}
	return strings.TrimSpace(string(out))
}
