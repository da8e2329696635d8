package codemcp

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stuck is an upstream whose dial waits until it is let go, and counts.
func stuck(result error) (u *upstream, dials chan bool, letGo func()) {
	gate := make(chan struct{})
	dials = make(chan bool, 100)
	u = &upstream{name: "slow", dialing: make(chan struct{}, 1), gone: errors.New("not connected")}
	u.dial = func() (mcp.Transport, error) {
		dials <- true
		<-gate
		return nil, result
	}
	return u, dials, sync.OnceFunc(func() { close(gate) })
}

// While one connects nobody else does, and nobody waits for longer than they want, or to hear what is known.
func TestNobodyIsHeldUpByADial(t *testing.T) { synctest.Test(t, testNobodyIsHeldUp) }

func testNobodyIsHeldUp(t *testing.T) {
	u, dials, letGo := stuck(errors.New("no route"))
	defer letGo()
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if _, err := u.connected(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot reach the server slow: no route") {
				t.Errorf("got %v", err)
			}
		})
	}
	<-dials
	known := make(chan error, 1)
	go func() {
		_, _, gone := u.known()
		known <- gone
	}()
	select {
	case err := <-known:
		if err == nil {
			t.Error("a server that is not reached is not gone")
		}
	case <-time.After(connectTime / 2):
		t.Fatal("what is known waits for the dial")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	left := errors.New("the program left")
	cancel(left)
	if _, err := u.connected(ctx); !errors.Is(err, left) {
		t.Errorf("who left gets %v", err)
	}
	letGo()
	all.Wait()
	if len(dials) != 0 {
		t.Errorf("%d more dials", len(dials))
	}
}

// What is closed waits for the dial under way, and is not dialled any more.
func TestCloseWaitsForADial(t *testing.T) { synctest.Test(t, testCloseWaits) }

func testCloseWaits(t *testing.T) {
	u, dials, letGo := stuck(errors.New("no route"))
	defer letGo()
	go func() { _, _ = u.connected(t.Context()) }()
	<-dials
	closed := make(chan error, 1)
	go func() { closed <- u.close() }()
	select {
	case <-closed:
		t.Error("closed before the dial ended")
	case <-time.After(connectTime):
	}
	letGo()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := u.connected(t.Context()); err == nil || err.Error() != "it is closed" || len(dials) != 0 {
		t.Errorf("got %v, %d dials", err, len(dials))
	}
}
