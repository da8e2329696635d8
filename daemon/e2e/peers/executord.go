package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/executord/executord/daemon/e2e/gauge"
	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// startExecutord starts the service of a folder of binaries and connects to it. Its CPU time is that of the service and
// its workers, without the client's.
func startExecutord(ctx context.Context, bin string) (*engine, error) {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	service, worker := filepath.Join(bin, "executord"), filepath.Join(bin, "executor-worker")
	dir, err := os.MkdirTemp("", "executord-peers-")
	if err != nil {
		return nil, err
	}
	address := "unix:" + filepath.Join(dir, "s")
	s, err := spawn(ctx, service, "--listen", address, "--worker-binary", worker)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	var c *client.Client
	stop := func() {
		if c != nil {
			_ = c.Close()
		}
		s.end()
		_ = os.RemoveAll(dir)
	}
	err = s.ready(func(ctx context.Context) (err error) {
		c, err = client.Dial(ctx, address)
		return err
	})
	if err != nil {
		stop()
		return nil, err
	}
	return &engine{
		name:    "executord",
		version: fmt.Sprintf("%s (%s)", versionOf(service), versionOf(worker)),
		cpu:     func() time.Duration { return gauge.FamilyCPU(s.pid()) },
		turn:    turnOf(func(ctx context.Context, code string) (int, error) { return execute(ctx, c, code) }),
		stop:    stop,
	}, nil
}

var codemode = executor.Provider{Name: "codemode", Tools: map[string]executor.Tool{
	"echo": func(_ context.Context, args []protocol.Value) (protocol.Value, error) { return args[0], nil },
	"len":  executor.Func(func(b []byte) int { return len(b) }),
}}

// execute runs a program and returns its value, or the length of a string.
func execute(ctx context.Context, c executor.Executor, code string) (int, error) {
	r := executor.Request{Execute: protocol.Execute{Code: code, Form: protocol.FormFunction}}
	r.Provide(codemode)
	o, err := c.Execute(ctx, r)
	if err == nil {
		err = o.Err()
	}
	if err != nil {
		return 0, err
	}
	if o.Value[0] == '"' {
		return len(o.Value) - len(`""`), nil
	}
	return strconv.Atoi(string(o.Value))
}

// versionOf is what a program of the project says of itself.
func versionOf(program string) string {
	out, err := exec.Command(program, "--version").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "executord ")
}
