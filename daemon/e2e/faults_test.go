package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

// The tests of this file are named after publicly reported faults of systems like this one; see
// sandbox/testdata/faults.md.

// TestT7HealthUnderBusyLoops: while all workers loop and more programs wait, probes are answered, all of them before the
// loops end.
func TestT7HealthUnderBusyLoops(t *testing.T) {
	s := start(t, testbin.Worker(t), "--workers", "2")
	c := s.dial()
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var running, ended sync.WaitGroup
	running.Add(2)
	for range 4 { // two of them wait
		r := program("console.log(1); for (const end = Date.now() + 60_000; Date.now() < end;);")
		r.Limits = protocol.Limits{CPUMs: 60_000, WallMs: 120_000, TotalMs: 120_000}
		r.Logs.Stream = true
		r.OnLog = func(protocol.Log) { running.Done() }
		ended.Go(func() {
			o, err := c.Execute(ctx, r)
			if err != nil || o.Error == nil || o.Error.Type != protocol.Cancelled {
				t.Errorf("a loop ended in %+v, %v", o, err)
			}
		})
	}
	running.Wait()
	web := s.web()
	var took []time.Duration
	for range 50 {
		began := time.Now()
		if status := probe(web, "/healthz"); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
		took = append(took, time.Since(began))
	}
	t.Logf("50 probes: %s", percentiles(took))
	cancel()
	ended.Wait()
}

// TestC5StartTellsWhatIsMissing: a worker that cannot run makes the service fail at start, with the worker's own words.
func TestC5StartTellsWhatIsMissing(t *testing.T) {
	worker := filepath.Join(t.TempDir(), "worker")
	if err := os.WriteFile(worker, []byte("#!/bin/sh\necho 'engine: cannot run without --special' >&2\nexit 9\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testbin.Executord(t), "--listen", "unix:"+filepath.Join(t.TempDir(), "s"), "--worker-binary", worker)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cannot run without --special") || !strings.Contains(string(out), "exit:9") {
		t.Errorf("executord ended with %v and said:\n%s", err, out)
	}
}

// TestC7StopWithWorkInFlight: what runs is finished, what waits is turned away or finished too, every caller hears, and
// the service ends well.
func TestC7StopWithWorkInFlight(t *testing.T) {
	s := startThree(t)
	c := s.dial()
	defer c.Close()
	running, queued, free := make(chan struct{}, 20), make(chan struct{}, 20), make(chan struct{})
	var all sync.WaitGroup
	var mu sync.Mutex
	finished := 0
	for range 20 {
		r := program("await tools.wait(); return 7")
		r.Provide(executor.Provider{Name: "tools", Tools: map[string]executor.Tool{"wait": func(context.Context, []protocol.Value) (protocol.Value, error) {
			running <- struct{}{}
			<-free
			return nil, nil
		}}})
		r.OnState = func(st protocol.State) {
			if st.State == protocol.StateQueued {
				queued <- struct{}{}
			}
		}
		all.Go(func() {
			o, err := c.Execute(t.Context(), r)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && string(o.Value) == "7":
				finished++
			case !errors.Is(err, protocol.Draining):
				t.Errorf("a caller got %+v, %v", o, err)
			}
		})
	}
	for range threeWorkers {
		<-running
	}
	for range 20 - threeWorkers {
		<-queued
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	web := s.web()
	within(5*time.Second, func() bool { return probe(web, "/readyz") != http.StatusOK }) // it has heard
	close(free)
	all.Wait()
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("executord ended with %v", err)
	}
	if finished < threeWorkers {
		t.Errorf("only %d programs were finished", finished)
	}
}

// web is an HTTP client of the service.
func (s *service) web() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(s.address, "unix:"))
	}}}
}

// probe is the status of a probe, 0 when there is no answer.
func probe(web *http.Client, path string) int {
	resp, err := web.Get("http://localhost" + path)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
