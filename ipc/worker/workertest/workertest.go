// Package workertest gives tests the real worker binary. Only tests import it.
package workertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// BinVar names the environment variable with the folder of ready binaries, as `make test` sets it. Without it they are
// built once per test process.
const BinVar = "EXECUTORD_TEST_BIN"

// Binary is the path of the worker that operators get.
func Binary(tb testing.TB) string { return get(tb, &real) }

// Faulty is the path of a worker that dies on command: a program that prints "fault:NAME" makes it abort, segv, exit,
// kill, spin, fill, stop, garbage or panic.
func Faulty(tb testing.TB) string { return get(tb, &faulty) }

type binary struct {
	name, tags string
	once       sync.Once
	path       string
	err        error
}

var (
	real   = binary{name: "executor-worker"}
	faulty = binary{name: "executor-worker-faulty", tags: "executor_faults"}
)

func get(tb testing.TB, b *binary) string {
	tb.Helper()
	b.once.Do(func() { b.path, b.err = b.find() })
	if b.err != nil {
		tb.Fatal(b.err)
	}
	return b.path
}

func (b *binary) find() (string, error) {
	if dir := os.Getenv(BinVar); dir != "" {
		path := filepath.Join(dir, b.name)
		_, err := os.Stat(path)
		return path, err
	}
	dir, err := os.MkdirTemp("", "executor-worker-test")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, b.name)
	// The folder outlives the test process: a few dozen MB in the temporary folder, only where make is not used.
	cmd := exec.Command("go", "build", "-tags", b.tags, "-o", path, "github.com/executord/executord/cmd/executor-worker")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the worker: %w\n%s", err, out)
	}
	return path, nil
}
