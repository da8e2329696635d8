package executor_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/executord/executord/daemon/executor"
	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

func TestMain(m *testing.M) { os.Exit(testbin.MainInPath(m)) }

// Several in one process, each with its own tools; the end of one is nothing to the others.
func TestManyInOneProcess(t *testing.T) {
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			e, err := executor.New(t.Context(), executor.Config{Workers: 1})
			if err != nil {
				t.Error(err)
				return
			}
			for range 5 {
				r := executor.Request{Execute: protocol.Execute{Code: `globalThis.seen = (globalThis.seen ?? 0) + 1; [await me.number(), seen]`}}
				r.Provide(executor.Provider{Name: "me", Tools: map[string]executor.Tool{"number": executor.Func(func() int { return i })}})
				o, err := e.Execute(t.Context(), r)
				if want := fmt.Sprintf("[%d,1]", i); err != nil || string(o.Value) != want {
					t.Errorf("got %+v, %v, want %s", o, err, want)
				}
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if _, err := e.Execute(t.Context(), executor.Request{Execute: protocol.Execute{Code: "1"}}); !errors.Is(err, protocol.Draining) {
				t.Errorf("after Close: %v", err)
			}
		})
	}
	all.Wait()
}

func TestConfigsThatCannotWork(t *testing.T) {
	for want, c := range map[string]executor.Config{
		"worker binary":         {WorkerBinary: "/nowhere/none"},
		"cannot launch workers": {WorkerBinary: "/bin/false"},
		"workers is -1":         {Workers: -1},
		"queue is -1":           {Tune: func(c *pool.Config) { c.Queue = -1 }},
	} {
		if _, err := executor.New(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// Workers begin in a folder of their own, where a relative path leads nowhere.
func TestWorkerBinaryMayBeRelative(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "some-worker"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	t.Setenv("PATH", folder)
	for _, path := range []string{"./some-worker", filepath.Join("..", filepath.Base(folder), "some-worker"), "some-worker"} {
		if got, err := executor.FindWorker(path); err != nil || got != filepath.Join(folder, "some-worker") {
			t.Errorf("%s is found at %q, %v", path, got, err)
		}
	}
	if got, err := executor.FindWorker("./none"); err == nil {
		t.Errorf("a file that is not there is found at %q", got)
	}
}
