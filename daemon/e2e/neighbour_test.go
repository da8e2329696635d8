package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/testbin"
)

const neighbourToken = "a-secret-of-the-neighbour-only"

// What startThree asks for.
const (
	threeWorkers = 3
	spares       = 1 // beyond those; the default
	threeQueue   = 64
)

// startThree runs a service with three workers that also listens on TCP, where the neighbour gets an identity of its
// own.
func startThree(tb testing.TB, args ...string) *service {
	tb.Helper()
	tokens := filepath.Join(tb.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("neighbour "+neighbourToken+"\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	return start(tb, testbin.Worker(tb), append([]string{"--workers", fmt.Sprint(threeWorkers), "--queue", fmt.Sprint(threeQueue), "--listen", "tcp://127.0.0.1:0", "--token-file", tokens}, args...)...)
}

// neighbour is somebody who runs 1+1 ten times a second in a session of his own, whatever others do.
type neighbour struct {
	stop chan struct{}
	done sync.WaitGroup

	mu       sync.Mutex
	runs     []visit
	failures []string
}

// visit is one execution of the neighbour's.
type visit struct {
	began time.Time
	took  time.Duration
}

// neighbour moves in. A run begins when its time has come, whether the one before has ended or not.
func (s *service) neighbour() *neighbour {
	s.tb.Helper()
	c, err := client.Dial(context.Background(), "tcp://"+s.tcp(), client.WithToken(neighbourToken))
	if err != nil {
		s.tb.Fatal(err)
	}
	n := &neighbour{stop: make(chan struct{})}
	n.done.Go(func() {
		defer c.Close()
		var under sync.WaitGroup
		defer under.Wait()
		ticks := time.NewTicker(100 * time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-n.stop:
				return
			case <-ticks.C:
				under.Go(func() { n.visit(c) })
			}
		}
	})
	return n
}

func (n *neighbour) visit(c *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	v := visit{began: time.Now()}
	o, err := c.Execute(ctx, program("1+1"))
	v.took = time.Since(v.began)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs = append(n.runs, v)
	switch {
	case err != nil:
		n.failures = append(n.failures, err.Error())
	case string(o.Value) != "2":
		n.failures = append(n.failures, fmt.Sprintf("%s, %v", o.Value, o.Error))
	}
}

// leave stops the neighbour and waits for what he runs.
func (n *neighbour) leave() {
	close(n.stop)
	n.done.Wait()
}

// slowest is the longest of his executions that overlap a time.
func (n *neighbour) slowest(from, to time.Time) (d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, v := range n.runs {
		if v.began.Before(to) && v.began.Add(v.took).After(from) {
			d = max(d, v.took)
		}
	}
	return d
}

func (n *neighbour) String() string {
	var took []time.Duration
	for _, v := range n.runs {
		took = append(took, v.took)
	}
	return fmt.Sprintf("%d executions of the neighbour, %d failures, %s", len(n.runs), len(n.failures), percentiles(took))
}

// percentiles are the figures of a list of durations.
func percentiles(d []time.Duration) string {
	if len(d) == 0 {
		return "nothing measured"
	}
	slices.Sort(d)
	at := func(share float64) time.Duration {
		return d[int(share*float64(len(d)-1))].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("p50 %v, p99 %v, longest %v", at(0.5), at(0.99), at(1))
}
