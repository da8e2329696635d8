package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/executord/executord/daemon/e2e/gauge"
)

// engine is something that runs programs.
type engine struct {
	name, version string
	cpu           func() time.Duration                       // of all that runs programs, since it started
	turn          func(context.Context, job) (result, error) // does a job; never two at once
	stop          func()                                     // ends its processes and waits for them
}

// job asks for executions of one program, one after the other in each of the lanes.
type job struct {
	Code  string `json:"code"`
	Want  int    `json:"want"`
	Count int    `json:"count"` // executions in all
	ForMs int    `json:"forMs"` // none begins after this time
	GapMs int    `json:"gapMs"` // idle time after each
	Lanes int    `json:"lanes"` // how many are in flight
}

// result is what a job took.
type result struct {
	WallMs []float64 `json:"wallMs"` // of each execution
	TookMs float64   `json:"tookMs"` // of all, with their gaps
	Fault  string    `json:"fault,omitempty"`
}

// turnOf makes a turn of an engine that is asked from here: ask runs one program and returns its value, or the length of
// a string. It is called by several goroutines at once. The driver of the engines in node does the same there.
func turnOf(ask func(ctx context.Context, code string) (int, error)) func(context.Context, job) (result, error) {
	return func(ctx context.Context, j job) (result, error) {
		t := tally{job: j, begin: time.Now()}
		var lanes sync.WaitGroup
		for range j.Lanes {
			lanes.Go(func() {
				for t.next() && t.one(ctx, ask) {
					time.Sleep(time.Duration(j.GapMs) * time.Millisecond)
				}
			})
		}
		lanes.Wait()
		return result{WallMs: t.wallMs, TookMs: gauge.Milliseconds(time.Since(t.begin))}, t.err
	}
}

// tally is a turn that is under way.
type tally struct {
	job   job
	begin time.Time

	mu     sync.Mutex
	begun  int
	wallMs []float64
	err    error
}

// next tells whether another execution is to begin.
func (t *tally) next() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil || t.begun == t.job.Count || gauge.Milliseconds(time.Since(t.begin)) >= float64(t.job.ForMs) {
		return false
	}
	t.begun++
	return true
}

// one executes the program once and tells whether it gave what it should.
func (t *tally) one(ctx context.Context, ask func(context.Context, string) (int, error)) bool {
	asked := time.Now()
	got, err := ask(ctx, t.job.Code)
	took := time.Since(asked)
	if err == nil && got != t.job.Want {
		err = fmt.Errorf("got %d, not %d, from %s", got, t.job.Want, t.job.Code)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.err = err
		return false
	}
	t.wallMs = append(t.wallMs, gauge.Milliseconds(took))
	return true
}
