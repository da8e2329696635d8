package daemon

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/daemon/server"
	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// TestStopEndsWhatIsRetained: a service that stops ends sessions that have nothing under way, and what they retain; their
// clients know why. What runs has its grace, but may call nothing that is retained.
func TestStopEndsWhatIsRetained(t *testing.T) {
	p := newPool(t, func(c *pool.Config) { c.Retained, c.RetainedPerIdentity = 2, 2 })
	s := serve(t, p, server.Config{DrainGrace: time.Minute})
	keep := func(code string, call func(context.Context, executor.ToolCall) (protocol.Value, error)) (*client.Client, *executor.Handle) {
		c, err := client.Dial(t.Context(), s.unix, client.WithReconnect(0))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		r := executor.Request{Execute: protocol.Execute{Code: code, Retain: &protocol.Retain{}, Providers: []protocol.Provider{{Name: "tools", Tools: protocol.Tools{All: true}}}}, Call: call}
		o, err := c.Execute(t.Context(), r)
		if err != nil || o.Retained == nil {
			t.Fatalf("%+v, %v", o, err)
		}
		hs, err := executor.NewHandles(c, r).In(o.Value)
		if err != nil {
			t.Fatal(err)
		}
		return c, hs[0]
	}
	_, idle := keep("return () => 1", nil)
	called, answer := make(chan struct{}), make(chan struct{})
	answered := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(answered) // clients wait for their tools when they close
	_, busy := keep("return async (wait) => wait && await tools.wait()", func(context.Context, executor.ToolCall) (protocol.Value, error) {
		close(called)
		<-answer
		return protocol.Value("2"), nil
	})
	if v, err := idle.Call(t.Context()); err != nil || string(v) != "1" {
		t.Fatalf("%s, %v", v, err)
	}
	list := s.Sessions()
	for _, x := range list {
		if x.Retained != 1 {
			t.Errorf("listed as %+v", x)
		}
	}
	ended := make(chan error, 1)
	go func() {
		v, err := busy.Call(t.Context(), true)
		if err == nil && string(v) != "2" {
			err = errors.New("got " + string(v))
		}
		ended <- err
	}()
	<-called
	s.stop()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		_, err := idle.Call(t.Context())
		if errors.Is(err, protocol.HandleUnknown) && strings.Contains(err.Error(), "its session") { // it ended, or was over during the last call
			break
		}
		if err != nil && !errors.Is(err, protocol.Draining) && !errors.Is(err, protocol.HandleUnknown) || time.Now().After(end) {
			t.Fatalf("after the stop: %v", err)
		}
	}
	if _, err := busy.Call(t.Context(), false); !errors.Is(err, protocol.Draining) && !errors.Is(err, protocol.HandleUnknown) {
		t.Errorf("another call: %v", err)
	}
	answered()
	if err := <-ended; err != nil {
		t.Errorf("what was under way: %v", err)
	}
	<-s.done
	for _, x := range list {
		if n := p.Retained(x.ID); n != 0 {
			t.Errorf("%d executions are retained for nobody", n)
		}
	}
}
