package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/executord/executord/daemon/executor"
	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/ipc/fetch"
	"github.com/executord/executord/ipc/protocol"
)

// defaultGrace covers what runs before and after the harness, on a busy machine.
const defaultGrace = 80 * time.Second

// newPool starts workers with room for what the suite asks: cases with thousands of subtests in one program.
func newPool(ctx context.Context, binary string, workers int) (executor.Executor, error) {
	const hour = int64(time.Hour / time.Millisecond)
	const start = time.Minute
	ctx, cancel := context.WithTimeout(ctx, start)
	defer cancel()
	return executor.New(ctx, executor.Config{WorkerBinary: binary, Workers: workers, Tune: func(c *pool.Config) {
		c.Queue, c.QueuePerIdentity, c.QueueTimeout = workers, workers, time.Hour
		c.SpawnTimeout = start
		c.MaxLimits.CPUMs, c.MaxLimits.WallMs, c.MaxLimits.TotalMs = hour, hour, hour
		c.Limits = c.MaxLimits
	}})
}

// runner runs cases.
type runner struct {
	maker
	executor executor.Executor
	grace    time.Duration // what a program may take beyond the time-out of its harness
}

// run runs one case. How badly it went is in the result.
func (r runner) run(ctx context.Context, t testCase) fileResult {
	result := fileResult{Area: t.Area, Path: t.Path, Search: t.Search, Tentative: t.Tentative, Tests: []subtest{}}
	program, err := r.make(t)
	if err != nil {
		result.Outcome, result.Message = outcomeFault, err.Error()
		return result
	}
	limit := (r.timeout(t) + r.grace).Milliseconds()
	began := time.Now()
	request := executor.Request{Execute: protocol.Execute{
		Code: program, Form: protocol.FormScript, Name: "wpt.js",
		Limits: protocol.Limits{CPUMs: limit, WallMs: limit, TotalMs: limit},
	}}
	if r.server != "" {
		request.Name, request.Network, request.Fetch = r.server+t.Path+t.Search, protocol.NetworkHost, fetch.Over(fetch.Transport())
	}
	outcome, err := r.executor.Execute(ctx, request)
	result.MS = time.Since(began).Milliseconds()
	if err == nil && outcome.Error != nil {
		err = outcome.Error
	}
	if err != nil {
		result.Outcome, result.Message = outcomeOf(err), err.Error()
		return result
	}
	if err := result.take(outcome.Value); err != nil {
		result.Outcome, result.Message = outcomeFault, err.Error()
	}
	return result
}

// outcomeOf names the end of a program that returned nothing.
func outcomeOf(err error) string {
	for _, clock := range []protocol.Type{protocol.CPUTimeout, protocol.WallTimeout, protocol.TotalTimeout, protocol.Deadlock} {
		if errors.Is(err, clock) {
			return outcomeHang
		}
	}
	if errors.Is(err, protocol.WorkerCrashed) {
		return outcomeCrash
	}
	return outcomeFault
}

// take reads what a program returned: a string that holds JSON.
func (f *fileResult) take(value protocol.Value) error {
	var text string
	var found struct {
		Harness struct {
			Status  int    `json:"status"`
			Message string `json:"message"`
		} `json:"harness"`
		Tests []subtest `json:"tests"`
	}
	if err := protocol.Unmarshal(value, &text); err != nil {
		return fmt.Errorf("the program returned no text: %w", err)
	}
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		return fmt.Errorf("the program returned no result: %w", err)
	}
	f.Tests, f.Message = append(f.Tests, found.Tests...), found.Harness.Message
	switch found.Harness.Status {
	case 0:
		f.Outcome = outcomeOK
	case 2:
		f.Outcome = outcomeTimeout
	default:
		f.Outcome = outcomeError
	}
	return nil
}

// runAll runs cases, as many at once as jobs, and tells of each on progress.
func (r runner) runAll(ctx context.Context, cases []testCase, jobs int, progress io.Writer) []fileResult {
	results := make([]fileResult, len(cases))
	next := make(chan int)
	var group sync.WaitGroup
	var mu sync.Mutex // guards ran and progress
	ran := 0
	for range jobs {
		group.Go(func() {
			for i := range next {
				f := r.run(ctx, cases[i])
				results[i] = f
				mu.Lock()
				ran++
				_, _ = fmt.Fprintf(progress, "%d/%d %s\n", ran, len(cases), f.summary())
				mu.Unlock()
			}
		})
	}
	for i := range cases {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	group.Wait()
	return results
}

// again runs the cases that were not clean a second time, with doubled time-outs, one at a time: a busy machine is no
// reason to fail. The better result counts.
func (r runner) again(ctx context.Context, cases []testCase, results []fileResult, progress io.Writer) {
	r.short *= 2
	for i, f := range results {
		if f.Outcome == outcomeOK || ctx.Err() != nil {
			continue
		}
		second := r.run(ctx, cases[i])
		_, _ = fmt.Fprintf(progress, "again %s\n", second.summary())
		if second.Outcome == outcomeOK || second.passes() > f.passes() {
			results[i] = second
		}
	}
}
