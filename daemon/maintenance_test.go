package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/executord/executord/daemon/lifecycle"
	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// wantMaintenance asks in every way there is, and wants to be told why not.
func (s *service) wantMaintenance(c executor.Executor, reason string) {
	s.t.Helper()
	if status, body := s.get("/readyz", ""); status != 503 || !strings.Contains(body, `"type":"maintenance"`) || !strings.Contains(body, reason) {
		s.t.Errorf("readyz says %d %s", status, body)
	}
	told := func(what string, err error) {
		if !errors.Is(err, protocol.Maintenance) || !strings.Contains(err.Error(), reason) {
			s.t.Errorf("%s: %v", what, err)
		}
	}
	if c != nil {
		_, err := c.Execute(s.t.Context(), executor.Request{Execute: protocol.Execute{Code: "1"}})
		told("an execution in an open session", err)
	}
	_, err := client.Dial(s.t.Context(), "unix:"+s.socket)
	told("a new session", err)
	if status, body := s.get("/v1/execute", `{"code":"1"}`); status != 503 || faultOf(body) != protocol.Maintenance || !strings.Contains(body, reason) {
		s.t.Errorf("a single request: %d %s", status, body)
	}
	if status, _ := s.get("/healthz", ""); status != 200 {
		s.t.Errorf("healthz says %d", status)
	}
}

func TestMaintenance(t *testing.T) {
	s := start(t, nil)
	c := s.client()
	running := hold(c)
	<-running.running
	waits := queued(t, c)
	if err := s.EnterMaintenance("the disk is being replaced", "ops", false); err != nil {
		t.Fatal(err)
	}
	s.wantMaintenance(c, "the disk is being replaced")
	if m := s.Maintenance(); m == nil || m.Who != "ops" || m.Since.IsZero() || m.Kept {
		t.Errorf("it is in %+v", m)
	}
	if err := s.EnterMaintenance("and the memory", "ops", false); err != nil {
		t.Fatal(err)
	}
	s.wantMaintenance(c, "and the memory")
	close(running.release)
	for _, h := range []*held{running, waits} { // what is here finishes
		<-h.done
		if h.err != nil || h.outcome.Err() != nil {
			t.Errorf("%+v, %v", h.outcome, h.err)
		}
	}
	if err := s.LeaveMaintenance("ops"); err != nil {
		t.Fatal(err)
	}
	if status, body := s.get("/readyz", ""); status != 200 || s.Maintenance() != nil {
		t.Errorf("readyz says %d %s", status, body)
	}
	if o, err := c.Execute(t.Context(), executor.Request{Execute: protocol.Execute{Code: "1"}}); err != nil || o.Err() != nil {
		t.Errorf("%+v, %v", o, err)
	}
	if s.LeaveMaintenance("ops") == nil {
		t.Error("left maintenance twice")
	}
}

func TestMaintenanceIsRefused(t *testing.T) {
	s := create(t, nil)
	if err := s.EnterMaintenance("", "", false); err == nil {
		t.Error("entered before the service ran")
	}
	s.run()
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, enter := range map[string]func() error{
		"a long reason":       func() error { return s.EnterMaintenance(strings.Repeat("x", maxReasonBytes+1), "", false) },
		"two lines":           func() error { return s.EnterMaintenance("a\nlevel=ERROR", "", false) },
		"a terminal's escape": func() error { return s.EnterMaintenance("a", "\x1b[2J", false) },
		"no UTF-8":            func() error { return s.EnterMaintenance("\xff", "", false) },
		"kept nowhere":        func() error { return s.EnterMaintenance("a", "", true) },
	} {
		if err := enter(); err == nil || s.State() != lifecycle.Ready || s.Maintenance() != nil {
			t.Errorf("%s: %v, %s", name, err, s.State())
		}
	}
	s.Stop()
	_ = s.wait()
	if err := s.EnterMaintenance("", "", false); err == nil || s.LeaveMaintenance("") == nil {
		t.Errorf("entered after the end: %v", err)
	}
}

// A maintenance outlives a restart if it is asked to, and only then.
func TestMaintenanceOutlivesARestartIfAsked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state") // made when it is needed
	file := filepath.Join(dir, "maintenance.json")
	restart := func(s *service) *service {
		t.Helper()
		s.Stop()
		if err := s.wait(); err != nil {
			t.Fatal(err)
		}
		return start(t, []string{"--state-dir=" + dir})
	}
	s := start(t, []string{"--state-dir=" + dir})
	if err := s.EnterMaintenance("not kept", "ops", false); err != nil {
		t.Fatal(err)
	}
	s = restart(s)
	if s.State() != lifecycle.Ready {
		t.Errorf("is %s", s.State())
	}
	if err := s.EnterMaintenance("kept", "ops", true); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	s = restart(s)
	s.wantMaintenance(nil, "kept")
	if m := s.Maintenance(); m == nil || m.Who != "ops" || !m.Kept {
		t.Errorf("it is in %+v", m)
	}
	if got := s.path(); len(got) != 3 || got[2] != "maintenance_entered>maintenance" {
		t.Errorf("went through %v: it must never have been ready", got)
	}
	// Another one takes its place, which is not kept.
	if err := s.EnterMaintenance("not kept", "ops", false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	if err := s.EnterMaintenance("kept", "ops", true); err != nil {
		t.Fatal(err)
	}
	if err := s.LeaveMaintenance("ops"); err != nil {
		t.Fatal(err)
	}
	if s = restart(s); s.State() != lifecycle.Ready {
		t.Errorf("is %s", s.State())
	}
	// Of a file that cannot be read nobody knows what it says.
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = restart(s)
	s.wantMaintenance(nil, "cannot be read")
	if err := s.LeaveMaintenance("ops"); err != nil {
		t.Fatal(err)
	}
	if s = restart(s); s.State() != lifecycle.Ready {
		t.Errorf("is %s", s.State())
	}
}
