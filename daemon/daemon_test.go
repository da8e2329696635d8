package daemon

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/executord/executord/daemon/events"
	"github.com/executord/executord/daemon/lifecycle"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// Nobody can connect before the service has shown that it can do its work.
func TestBootOrder(t *testing.T) {
	s := create(t, nil)
	early := make(chan bool, 1)
	s.Subscribe(func(tr lifecycle.Transition) {
		if tr.Event == lifecycle.CheckPassed {
			_, err := os.Lstat(s.socket)
			early <- !errors.Is(err, fs.ErrNotExist)
		}
	})
	s.run()
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if <-early {
		t.Error("the socket was there before the check had passed")
	}
	if status, body := s.get("/readyz", ""); status != 200 {
		t.Errorf("readyz says %d %s", status, body)
	}
	s.Stop()
	if err := s.wait(); err != nil {
		t.Error(err)
	}
	want := []string{
		"workers_ready>checking", "check_passed>opening", "opened>ready",
		"stop>drain_delay", "delay_over>draining", "drained>closing", "ended>stopped",
	}
	if got := s.path(); !slices.Equal(got, want) {
		t.Errorf("went through %v, want %v", got, want)
	}
	if err := s.Run(t.Context()); err == nil {
		t.Error("ran twice")
	}
	if err := s.WaitReady(t.Context()); err == nil {
		t.Error("is ready after its end")
	}
}

// Limits under which nothing can run are the service's fault, not its callers'.
func TestFailedSelfCheckServesNobody(t *testing.T) {
	s := create(t, []string{"--default-modules=10"})
	err := s.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "cannot run a program") {
		t.Errorf("got %v", err)
	}
	want := []string{"workers_ready>checking", "check_failed>closing", "ended_badly>failed"}
	if got := s.path(); !slices.Equal(got, want) {
		t.Errorf("went through %v, want %v", got, want)
	}
	if _, err := os.Lstat(s.socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket was opened: %v", err)
	}
}

func TestBootFails(t *testing.T) {
	s := create(t, []string{"--worker-binary=/bin/false"})
	if err := s.Run(t.Context()); err == nil || s.State() != lifecycle.Failed {
		t.Errorf("%s, %v", s.State(), err)
	}
	s = create(t, []string{"--listen=unix:/nowhere/none"})
	err := s.Run(t.Context())
	if err == nil || !slices.Contains(s.path(), "listener_failed>closing") || s.State() != lifecycle.Failed {
		t.Errorf("%v, %v", s.path(), err)
	}
}

// A stop during the start is a stop: nothing is left, and it is no fault.
func TestStopWhileBooting(t *testing.T) {
	for _, at := range []lifecycle.Event{"", lifecycle.WorkersReady, lifecycle.CheckPassed} {
		t.Run(string(at), func(t *testing.T) {
			s := create(t, nil)
			if at == "" {
				s.Stop()
			}
			reached := make(chan struct{})
			s.Subscribe(func(tr lifecycle.Transition) {
				if tr.Event == at {
					close(reached)
				}
			})
			s.run()
			if at != "" {
				<-reached
				s.Stop()
			}
			if err := s.wait(); err != nil || s.State() != lifecycle.Stopped {
				t.Errorf("%s, %v", s.State(), err)
			}
			if _, err := os.Lstat(s.socket); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the socket is there: %v", err)
			}
		})
	}
}

// W9, and the order of a drain: readiness turns callers away and all else is served; then sessions hear of it, what waits
// is refused, what runs finishes; each connection has its outcomes and then its end.
func TestW9DrainDelayThenGrace(t *testing.T) {
	s := start(t, []string{"--drain-delay=1h", "--drain-grace=30m", "--stop-timeout=2h"})
	c := s.client()
	running := hold(c)
	<-running.running
	waits := queued(t, s.client())
	busy, idle := s.host(), s.host()
	say(t, busy, `{"jsonrpc":"2.0","id":"w","method":"execute","params":{"code":"1"}}`)
	hear(t, busy, `"state":"queued"`)

	s.Stop()
	s.become(lifecycle.DrainDelay)
	if status, body := s.get("/readyz", ""); status != 503 || !strings.Contains(body, `"type":"draining"`) {
		t.Errorf("readyz says %d %s", status, body)
	}
	if status, _ := s.get("/healthz", ""); status != 200 {
		t.Errorf("healthz says %d", status)
	}
	late := queued(t, s.client()) // a new session, a new execution

	s.fire(lifecycle.DelayOver, "", "")
	hear(t, busy, `"method":"session.draining"`)
	hear(t, busy, `"id":"w"`, `"type":"draining"`)
	hearClose(t, busy, websocket.CloseGoingAway)
	hear(t, idle, `"method":"session.draining"`)
	hearClose(t, idle, websocket.CloseGoingAway)
	for _, h := range []*held{waits, late} {
		<-h.done
		if !errors.Is(h.err, protocol.Draining) {
			t.Errorf("one that waited: %+v, %v", h.outcome, h.err)
		}
	}
	if _, body := s.get("/v1/execute", `{"code":"1"}`); faultOf(body) != protocol.Draining {
		t.Errorf("a new request gets %s", body)
	}
	close(running.release)
	<-running.done
	if running.err != nil || string(running.outcome.Value) != `"released"` {
		t.Errorf("the one that ran: %+v, %v", running.outcome, running.err)
	}
	if err := s.wait(); err != nil || s.State() != lifecycle.Stopped {
		t.Errorf("%s, %v", s.State(), err)
	}
}

// The second request makes delay and grace short, and still in order: every outcome is delivered.
func TestSecondStopHurries(t *testing.T) {
	for _, at := range []lifecycle.State{lifecycle.DrainDelay, lifecycle.Draining} {
		t.Run(string(at), func(t *testing.T) {
			s := start(t, []string{"--drain-delay=1h", "--drain-grace=30m", "--stop-timeout=2h"})
			c := s.client()
			running := hold(c)
			<-running.running
			waits := queued(t, c)
			s.Stop()
			if at == lifecycle.Draining {
				s.fire(lifecycle.DelayOver, "", "")
				<-waits.done
			}
			s.become(at)
			s.Stop()
			<-running.done
			<-waits.done
			if running.err != nil || !errors.Is(running.outcome.Err(), protocol.Cancelled) || len(running.outcome.Logs) != 1 {
				t.Errorf("the one that ran: %+v, %v", running.outcome, running.err)
			}
			if !errors.Is(waits.err, protocol.Draining) {
				t.Errorf("the one that waited: %+v, %v", waits.outcome, waits.err)
			}
			if err := s.wait(); err != nil || s.State() != lifecycle.Stopped {
				t.Errorf("%s, %v", s.State(), err)
			}
			if !slices.Contains(s.path(), "hurry>hurrying") {
				t.Errorf("went through %v", s.path())
			}
		})
	}
}

// The third ends it at once, and says so.
func TestThirdStopEndsAtOnce(t *testing.T) {
	s := start(t, []string{"--drain-delay=1h", "--drain-grace=30m", "--stop-timeout=2h"})
	c := s.client()
	running := hold(c)
	<-running.running
	for range 3 {
		s.Stop()
	}
	if err := s.wait(); !errors.Is(err, ErrCutShort) || s.State() != lifecycle.Failed {
		t.Errorf("%s, %v", s.State(), err)
	}
	_ = c.Close() // or it tries to resume its session
	<-running.done
	if _, err := os.Lstat(s.socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// Who keeps the service from ending does so for no longer than the stop timeout, and loses nothing that could be had.
func TestStopTimeoutBoundsTheStop(t *testing.T) {
	s := start(t, []string{"--drain-grace=900ms", "--stop-timeout=1s"})
	running := hold(s.client())
	<-running.running
	began := time.Now()
	s.Stop()
	<-running.done
	if running.err != nil || !errors.Is(running.outcome.Err(), protocol.Cancelled) {
		t.Errorf("the one that ran: %+v, %v", running.outcome, running.err)
	}
	_ = s.wait() // in order, unless this machine is too slow for that
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the stop took %s", took)
	}
	// And where the grace could not be made short enough: the machine is told that the time is over.
	s = start(t, nil)
	running = hold(s.client())
	<-running.running
	s.Stop()
	s.become(lifecycle.Draining)
	s.fire(lifecycle.Cut, "it took as long as --stop-timeout allows", "")
	if err := s.wait(); !errors.Is(err, ErrCutShort) || !strings.Contains(err.Error(), "--stop-timeout") {
		t.Errorf("got %v", err)
	}
}

// When a listener fails, what runs is finished, and the service ends as failed.
func TestListenerFailure(t *testing.T) {
	first, second := listener(t), listener(t)
	s := start(t, nil, WithListeners(first, second))
	s.socket = second.Addr().String()
	running := hold(s.client())
	<-running.running
	_ = first.Close()
	s.become(lifecycle.Draining)
	close(running.release)
	<-running.done
	if running.err != nil || string(running.outcome.Value) != `"released"` {
		t.Errorf("the one that ran: %+v, %v", running.outcome, running.err)
	}
	if err := s.wait(); err == nil || errors.Is(err, ErrCutShort) || s.State() != lifecycle.Failed {
		t.Errorf("%s, %v", s.State(), err)
	}
}

// listener is a unix socket that somebody else opened.
func listener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Several services in one process, each with its own settings, listeners and end; nothing of the process is touched.
func TestManyInOneProcess(t *testing.T) {
	mask := syscall.Umask(0o022)
	defer syscall.Umask(mask)
	var all []*service
	for range 3 {
		s := create(t, nil)
		s.run()
		all = append(all, s)
	}
	all[2].Stop()
	if err := all[2].wait(); err != nil {
		t.Error(err)
	}
	for _, s := range all[:2] {
		if err := s.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(s.socket); err != nil || info.Mode().Perm() != socketMode {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	}
	if err := all[0].EnterMaintenance("only this one", "", false); err != nil {
		t.Fatal(err)
	}
	if status, _ := all[1].get("/readyz", ""); status != 200 {
		t.Errorf("the other's readyz says %d", status)
	}
	all[0].Stop()
	if err := all[0].wait(); err != nil {
		t.Error(err)
	}
	o, err := all[1].client().Execute(t.Context(), executor.Request{Execute: protocol.Execute{Code: "1 + 1"}})
	if err != nil || string(o.Value) != "2" {
		t.Errorf("%+v, %v", o, err)
	}
	if now := syscall.Umask(0o022); now != 0o022 {
		t.Errorf("the mask is %o", now)
	}
}

// Who embeds the service hears of what happens, in order.
func TestEvents(t *testing.T) {
	var heard []events.Kind
	s := start(t, nil, WithEvents(func(e events.Event) { heard = append(heard, e.Kind) }))
	if err := s.EnterMaintenance("", "", false); err != nil {
		t.Fatal(err)
	}
	if err := s.LeaveMaintenance(""); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(""); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := s.wait(); err != nil {
		t.Fatal(err)
	}
	heard = slices.DeleteFunc(heard, func(k events.Kind) bool { return strings.HasPrefix(string(k), "worker_") })
	want := []events.Kind{events.ServiceReady, events.MaintenanceBegan, events.MaintenanceEnded, events.Reloaded, events.DrainBegan}
	if !slices.Equal(heard, want) {
		t.Errorf("heard %v, want %v", heard, want)
	}
	if _, _, err := s.Events().Subscribe(s.Events().Last()).Next(context.Background()); err == nil {
		t.Error("the events go on after the end")
	}
}
