package daemon

import (
	"context"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/executord/executord/daemon/admin"
	"github.com/executord/executord/daemon/events"
	"github.com/executord/executord/daemon/lifecycle"
	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// operate is a client of the admin socket, which is beside that of callers.
func (s *service) operate() *admin.Client {
	s.t.Helper()
	c, err := admin.NewClient("unix:" + filepath.Join(filepath.Dir(s.socket), "admin.sock"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// TestOperatorsDay goes through what an operator does, over the real service.
func TestOperatorsDay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	write(t, file, "EXECUTORD_QUEUE=9\n")
	s := start(t, []string{"--settings-file=" + file, "--queue-per-caller=3", "--state-dir=" + t.TempDir()})
	c := s.operate()
	st, err := c.Status(t.Context())
	if err != nil || st.State.Name != "ready" || !st.State.Ready || st.Workers.Idle+st.Workers.Restoring == 0 || time.Since(st.State.Since) > time.Minute {
		t.Fatalf("%+v, %v", st, err)
	}
	found, err := c.Check(t.Context())
	if err != nil || !found.OK || found.Address != "unix:"+s.socket {
		t.Errorf("%+v, %v", found, err)
	}
	m, err := c.EnterMaintenance(t.Context(), admin.EnterMaintenance{Reason: "new disks", Persistent: true})
	if err != nil || !m.Active || !m.Persistent || !strings.Contains(m.Who, "uid "+strconv.Itoa(os.Getuid())) {
		t.Errorf("%+v, %v", m, err)
	}
	if st, err = c.Status(t.Context()); err != nil || st.State.Name != "maintenance" || st.State.Ready || st.State.Reason != "new disks" || st.State.Who != m.Who {
		t.Errorf("%+v, %v", st.State, err)
	}
	if found, err = c.Check(t.Context()); err != nil || found.OK || !strings.Contains(found.Steps[0].Detail, "new disks") || !strings.Contains(found.Steps[0].Detail, "leave maintenance") {
		t.Errorf("%+v, %v", found, err)
	}
	if m, err = c.LeaveMaintenance(t.Context()); err != nil || m.Active || s.State() != lifecycle.Ready {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err = c.LeaveMaintenance(t.Context()); err != nil || m.Active {
		t.Errorf("again: %+v, %v", m, err)
	}
}

// TestOperatorChangesASetting: from the list to the file, the reload, and the list again.
func TestOperatorChangesASetting(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	write(t, file, "EXECUTORD_QUEUE=9\n")
	s := create(t, []string{"--settings-file=" + file})
	s.run()
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := s.operate()
	write(t, file, "EXECUTORD_LOG_LEVEL=debug\nEXECUTORD_MAX_MESSAGE=64\n")
	r, err := c.Reload(t.Context())
	if err != nil || !slices.Contains(r.Applied, "log-level") || !slices.Contains(r.NeedRestart, "max-message") {
		t.Errorf("%+v, %v", r, err)
	}
	list, err := c.Settings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list.Settings {
		switch x.Name {
		case "log-level":
			if x.Value != "debug" || x.Source != "file" || x.Line != 1 || !x.ChangedSinceBoot {
				t.Errorf("%+v", x)
			}
		case "max-message":
			if x.Value == "64" || x.AfterRestart == nil || *x.AfterRestart != "64" {
				t.Errorf("%+v", x)
			}
		}
	}
	if l, err := c.LogLevel(t.Context()); err != nil || l.Level != "DEBUG" {
		t.Errorf("%+v, %v", l, err)
	}
	write(t, file, "EXECUTORD_LOG_LEVEL=loud\n")
	if _, err = c.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "--log-level") {
		t.Errorf("a bad file: %v", err)
	}
	var kinds []events.Kind
	if err := c.Watch(t.Context(), admin.EventFilter{Kept: true, Kinds: []string{"reloaded", "reload_failed"}}, func(e events.Event) error {
		kinds = append(kinds, e.Kind)
		if !strings.Contains(e.Who, "uid ") {
			t.Errorf("%+v", e)
		}
		return nil
	}, func(admin.Missed) error { return nil }); err != nil || !slices.Equal(kinds, []events.Kind{events.Reloaded, events.ReloadFailed}) {
		t.Errorf("%v, %v", kinds, err)
	}
}

// The operator sees the end come: his stream has the drain, and then ends.
func TestOperatorWatchesTheDrain(t *testing.T) {
	s := start(t, []string{"--drain-grace=30s"})
	caller, err := client.Dial(t.Context(), "unix:"+s.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	running, outcome := make(chan struct{}), make(chan *protocol.Outcome, 1)
	go func() {
		r := executor.Request{Execute: protocol.Execute{Execution: "long", Code: "for (;;);", Limits: protocol.Limits{CPUMs: 30_000}}}
		r.OnState = func(st protocol.State) {
			if st.State == protocol.StateRunning {
				close(running)
			}
		}
		o, _ := caller.Execute(context.Background(), r)
		outcome <- o
	}()
	<-running
	c := s.operate()
	list, err := c.Sessions(t.Context())
	if err != nil || len(list.Sessions) != 1 || list.Sessions[0].State != "open" || list.Sessions[0].Executions != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	draining, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- c.Watch(context.Background(), admin.EventFilter{Kept: true, Follow: true, Kinds: []string{string(events.DrainBegan)}}, func(events.Event) error {
			close(draining)
			return nil
		}, func(admin.Missed) error { return nil })
	}()
	s.Stop()
	<-draining
	s.become(lifecycle.Draining)
	if st, err := c.Status(t.Context()); err != nil || st.State.Name != "draining" || st.Workers.Running != 1 {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := c.EnterMaintenance(t.Context(), admin.EnterMaintenance{Reason: "late"}); err == nil {
		t.Error("maintenance while draining")
	}
	if _, err := c.Cancel(t.Context(), "long", admin.Cancel{Reason: "no more time"}); err != nil {
		t.Error(err)
	}
	if o := <-outcome; o == nil || o.Error == nil || !strings.Contains(o.Error.Message, "no more time") {
		t.Errorf("%+v", o)
	}
	if err := s.wait(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the stream ended with %v", err)
	}
}

// U1: the socket of the operator has its mode and its group, and is gone afterwards.
func TestU1AdminSocketIsTheGroups(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to give files away")
	}
	group, err := user.LookupGroup("nogroup")
	if err != nil {
		t.Skip(err)
	}
	s := start(t, []string{"--admin-group=nogroup"})
	path := filepath.Join(filepath.Dir(s.socket), "admin.sock")
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != fs.ModeSocket|0o660 || strconv.Itoa(int(info.Sys().(*syscall.Stat_t).Gid)) != group.Gid {
		t.Errorf("%+v, %v", info, err)
	}
	s.Stop()
	_ = s.wait()
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is still there")
	}
}

func TestAdminSocketCanBeHandedInOrLeftOut(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "mine"))
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, nil, WithAdminListener(l))
	c, err := admin.NewClient("unix:" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if st, err := c.Status(t.Context()); err != nil || st.State.Name != "ready" {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(s.socket), "admin.sock")); err == nil {
		t.Error("there are two sockets")
	}
	none := start(t, []string{"--admin-listen="})
	if _, err := none.operate().Status(t.Context()); err == nil {
		t.Error("it is served")
	}
}

// Over TCP a check is a caller like others, with a token.
func TestCheckOverTCP(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	write(t, tokens, "app "+secretA+"\n")
	tcp, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	desk, err := net.Listen("unix", filepath.Join(t.TempDir(), "admin"))
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, []string{"--token-file=" + tokens}, WithListeners(tcp), WithAdminListener(desk))
	c, err := admin.NewClient("unix:" + desk.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.Check(t.Context())
	if err != nil || !found.OK || !strings.HasPrefix(found.Address, "tcp://127.0.0.1:") {
		t.Errorf("%+v, %v, of %v", found, err, s.Addresses())
	}
}
