package e2e

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// cutter stands between a client and the service and breaks each connection after a random number of bytes, in the
// middle of whatever is being said.
type cutter struct {
	service string // path of its socket
	listen  net.Listener
	cuts    atomic.Int64
	done    sync.WaitGroup

	mu     sync.Mutex
	random *rand.Rand
	pairs  map[*pair]struct{}
}

// Half of all connections break within so many bytes, which is a few messages; a few get far enough for anything.
const (
	fewBytes  = 3 << 10
	mostBytes = 2 << 20
)

func (s *service) cutter(seed uint64) *cutter {
	s.tb.Helper()
	l, err := net.Listen("unix", filepath.Join(s.tb.TempDir(), "c"))
	if err != nil {
		s.tb.Fatal(err)
	}
	c := &cutter{service: strings.TrimPrefix(s.address, "unix:"), listen: l, random: rand.New(rand.NewPCG(seed, 0)), pairs: map[*pair]struct{}{}}
	c.done.Go(c.accept)
	s.tb.Cleanup(func() {
		_ = l.Close()
		c.mu.Lock()
		for p := range c.pairs {
			p.close()
		}
		c.mu.Unlock()
		c.done.Wait()
	})
	return c
}

// budget is how many bytes a connection may pass on in one direction.
func (c *cutter) budget() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(min(math.Exp(c.random.ExpFloat64())*fewBytes/2, mostBytes)) + c.random.Int64N(fewBytes)
}

func (c *cutter) accept() {
	for {
		up, err := c.listen.Accept()
		if err != nil {
			return
		}
		down, err := net.Dial("unix", c.service)
		if err != nil {
			_ = up.Close()
			continue
		}
		p := &pair{client: up, server: down}
		c.mu.Lock()
		c.pairs[p] = struct{}{}
		c.mu.Unlock()
		pass := func(to, from net.Conn) {
			limit := c.budget()
			if n, _ := io.CopyN(to, from, limit); n == limit {
				c.cuts.Add(1)
			}
			p.close()
		}
		c.done.Go(func() {
			var other sync.WaitGroup
			other.Go(func() { pass(p.server, p.client) })
			pass(p.client, p.server)
			other.Wait()
			c.mu.Lock()
			delete(c.pairs, p)
			c.mu.Unlock()
		})
	}
}

// dial makes a client, however often the connection breaks before it has one.
func (c *cutter) dial(tb testing.TB, opts ...client.Option) *client.Client {
	tb.Helper()
	for {
		made, err := client.Dial(tb.Context(), "unix:"+c.listen.Addr().String(), opts...)
		if err == nil {
			return made
		}
		if tb.Context().Err() != nil {
			tb.Fatal(err)
		}
	}
}

// cutTrial is an execution whose every effect is counted.
type cutTrial struct {
	n, calls, bytes int
	begun           atomic.Int64
	called          []atomic.Int64
}

const cutProgram = `async ({n, calls, bytes}) => {
	await host.begin(n);
	let sum = 0;
	for (let i = 0; i < calls; ) {
		const some = [];
		for (let j = 0; j <= i % 3 && i < calls; j++, i++) some.push(host.call(n, i, 'x'.repeat(bytes)));
		for (const v of await Promise.all(some)) sum += v.length;
		console.log('line ' + i);
	}
	return {n, sum, text: 'y'.repeat(bytes)};
}`

// run executes the trial and says what went wrong.
func (x *cutTrial) run(c *client.Client) error {
	x.called = make([]atomic.Int64, x.calls)
	q := program(cutProgram)
	q.Input = protocol.Value(fmt.Sprintf(`{"n":%d,"calls":%d,"bytes":%d}`, x.n, x.calls, x.bytes))
	q.Logs.Stream = true
	q.Limits = protocol.Limits{WallMs: 60_000, TotalMs: 120_000}
	var streamed []string
	q.OnLog = func(l protocol.Log) { streamed = append(streamed, l.Text) }
	q.Provide(executor.Provider{Name: "host", Tools: map[string]executor.Tool{
		"begin": executor.Func(func(int) { x.begun.Add(1) }),
		"call": executor.Func(func(_, i int, text string) string {
			x.called[i].Add(1)
			return text
		}),
	}})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	o, err := c.Execute(ctx, q)
	if err == nil {
		err = o.Err()
	}
	if err != nil {
		return err
	}
	if want := fmt.Sprintf(`{"n":%d,"sum":%d,"text":"%s"}`, x.n, x.calls*x.bytes, strings.Repeat("y", x.bytes)); string(o.Value) != want {
		return fmt.Errorf("value %.200s, want %.200s", o.Value, want)
	}
	if n := x.begun.Load(); n != 1 {
		return fmt.Errorf("it ran %d times", n)
	}
	for i := range x.called {
		if n := x.called[i].Load(); n != 1 {
			return fmt.Errorf("call %d was run %d times", i, n)
		}
	}
	if len(streamed) != len(o.Logs) {
		return fmt.Errorf("%d lines were streamed of %d", len(streamed), len(o.Logs))
	}
	for i, l := range o.Logs {
		if streamed[i] != l.Text {
			return fmt.Errorf("line %d was streamed as %q, want %q", i, streamed[i], l.Text)
		}
	}
	return nil
}

// TestSessionsSurviveCuts: connections break at random bytes all the time; each of 500 executions runs once, each of
// its tool calls is run once, and its outcome and its lines come once. Sessions are also replaced by age, by client and
// service.
func TestSessionsSurviveCuts(t *testing.T) {
	const executions, clients, each = 500, 4, 4
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := startThree(t, "--max-session-age", "2s")
	before := s.rest()
	wires := s.cutter(seed)
	trials := make(chan *cutTrial)
	var users sync.WaitGroup
	var made []*client.Client
	for i := range clients {
		var opts []client.Option
		if i%2 == 0 {
			opts = append(opts, client.WithMaxSessionAge(time.Second))
		}
		c := wires.dial(t, opts...)
		made = append(made, c)
		for range each {
			users.Go(func() {
				for x := range trials {
					if err := x.run(c); err != nil {
						t.Errorf("execution %d, %d calls with %d bytes: %v", x.n, x.calls, x.bytes, err)
					}
				}
			})
		}
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for n := range executions {
		trials <- &cutTrial{n: n, calls: r.IntN(8), bytes: r.IntN(1 << (4 + r.IntN(10)))}
	}
	close(trials)
	users.Wait()
	for _, c := range made {
		_ = c.Close()
	}
	t.Logf("%d connections were cut", wires.cuts.Load())
	if n := wires.cuts.Load(); n < 50 {
		t.Errorf("only %d connections were cut", n)
	}
	s.settle(before)
}
