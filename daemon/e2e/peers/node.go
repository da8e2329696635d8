package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/executord/executord/daemon/e2e/gauge"
)

func startIsolatedVM(ctx context.Context, h *home) (*engine, error) {
	return startNode(ctx, h, "isolated-vm")
}

func startQuickJS(ctx context.Context, h *home) (*engine, error) {
	e, err := startNode(ctx, h, "quickjs")
	if err == nil {
		e.version = h.version("quickjs-emscripten")
	}
	return e, err
}

// startNode starts the driver for an engine that lives in a node process. Its CPU time is that of the process, with the
// tools that are called in it.
func startNode(ctx context.Context, h *home, name string) (*engine, error) {
	cmd := exec.CommandContext(ctx, h.node(), "--no-node-snapshot", h.driver("driver.mjs"), name)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &driver{jobs: json.NewEncoder(in), results: json.NewDecoder(bufio.NewReader(out))}
	stop := func() {
		_ = in.Close() // which ends it
		_ = cmd.Wait()
	}
	var hello struct{ Node, V8 string }
	if err := d.results.Decode(&hello); err != nil {
		stop()
		return nil, fmt.Errorf("the driver of %s does not begin: %w", name, err)
	}
	return &engine{
		name:    name,
		version: fmt.Sprintf("%s in node %s (V8 %s)", h.version(name), hello.Node, hello.V8),
		cpu:     func() time.Duration { return gauge.ProcessCPU(cmd.Process.Pid) },
		turn:    d.turn,
		stop:    stop,
	}, nil
}

// driver is a running drivers/driver.mjs.
type driver struct {
	jobs    *json.Encoder
	results *json.Decoder
}

// turn has the driver do a job. It ends early when the context of the process does.
func (d *driver) turn(_ context.Context, j job) (r result, err error) {
	if err := d.jobs.Encode(j); err != nil {
		return r, err
	}
	if err := d.results.Decode(&r); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the driver is gone")
		}
		return r, err
	}
	if r.Fault != "" {
		return r, errors.New(r.Fault)
	}
	return r, nil
}
