package daemon

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/daemon/settings"
)

// load reads settings, with a worker binary that is there.
func load(t *testing.T, args ...string) settings.Settings {
	t.Helper()
	l, err := settings.Load(args, []string{"EXECUTORD_WORKER_BINARY=/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	return l.Settings()
}

// The defaults are written in the tags, for the help; those of the parts are what is meant.
func TestDefaultsAreThoseOfThePool(t *testing.T) {
	s := load(t)
	got, err := poolConfig(&s, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := pool.Defaults()
	want.Logger = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("defaults are %+v, those of the pool %+v", got, want)
	}
	c, err := (&Daemon{}).serverConfig(&s)
	if err != nil {
		t.Fatal(err)
	}
	if c.Limits != want.MaxLimits || c.MaxMessageBytes != 32<<20 || len(c.Policy.Tokens) != 0 {
		t.Errorf("the server gets %+v", c)
	}
}

// Nothing is reached unless a pattern says so.
func TestEgressSettings(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want bool
	}{
		{nil, false},
		{[]string{"--egress-allow=https://*.example.com,http://x:8080", "--egress-allow-private=10.0.0.0/8,fd00::/8"}, true},
	} {
		s := load(t, tc.args...)
		c, err := poolConfig(&s, nil)
		if allowed := c.Direct != nil; allowed != tc.want || err != nil {
			t.Errorf("%q: %v, %v", tc.args, allowed, err)
		}
	}
}

func TestSettingsReachTheParts(t *testing.T) {
	s := load(t, "--workers=7", "--queue=3", "--default-cpu=20ms", "--max-tool-calls=9", "--max-heap=300", "--worker-max-age=2h",
		"--heartbeat-timeout=7s", "--max-sessions=5", "--allow-uid=5,6", "--drain-grace=3s")
	p, err := poolConfig(&s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Workers != 7 || p.Queue != 3 || p.QueuePerIdentity != 3 || p.Limits.CPUMs != 20 || p.MaxLimits.HeapMiB != 300 ||
		p.MaxLimits.ToolCalls != 9 || p.Limits.ToolCalls != 9 || p.WorkerMaxAge != 2*time.Hour || p.HeartbeatTimeout != 7*time.Second {
		t.Errorf("the pool gets %+v", p)
	}
	c, err := (&Daemon{}).serverConfig(&s)
	if err != nil {
		t.Fatal(err)
	}
	if c.Limits != p.MaxLimits || c.MaxSessions != 5 || len(c.Policy.UIDs) != 2 || c.DrainGrace != 3*time.Second {
		t.Errorf("the server gets %+v", c)
	}
}

// A program that embeds the service has its settings checked as those of a command line.
func TestSettingsOfAnotherProgramAreChecked(t *testing.T) {
	s := settings.Defaults()
	s.WorkerBinary = "/bin/true"
	if _, err := New(s); err != nil {
		t.Fatal(err)
	}
	s.Workers, s.Default.HeapMiB = 0, 600
	_, err := New(s)
	var faults settings.Faults
	if !errors.As(err, &faults) || len(faults) != 2 {
		t.Errorf("got %v", err)
	}
}
