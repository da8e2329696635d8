package daemon

import (
	"errors"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/daemon/settings"
	"github.com/executord/executord/ipc/testcert"
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
		"--heartbeat-timeout=7s", "--worker-start-timeout=8s", "--retained-executions=7", "--retain-idle=9s", "--retain-lifetime=10s", "--max-sessions=5", "--allow-uid=5,6", "--drain-grace=3s")
	p, err := poolConfig(&s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Workers != 7 || p.Queue != 3 || p.QueuePerIdentity != 3 || p.Limits.CPUMs != 20 || p.MaxLimits.HeapMiB != 300 ||
		p.MaxLimits.ToolCalls != 9 || p.Limits.ToolCalls != 9 || p.WorkerMaxAge != 2*time.Hour || p.HeartbeatTimeout != 7*time.Second || p.SpawnTimeout != 8*time.Second ||
		p.Retained != 7 || p.RetainedPerIdentity != 4 || p.RetainIdle != 9*time.Second || p.RetainLifetime != 10*time.Second {
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

// another is a value of a setting that is not the one in force, with the flags that it needs beside it.
func another(t *testing.T, s settings.Setting) []string {
	t.Helper()
	ca := testcert.New(t)
	pair := ca.Server("a")
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "file")
		write(t, path, text)
		return path
	}
	cert, key := "--tls-cert="+file(string(pair.Cert)), "--tls-key="+file(string(pair.Key))
	switch s.Name {
	case "workers", "spare-workers", "retained-executions":
		return []string{"--" + s.Name + "=7"}
	case "retained-per-caller": // half of what the machine's processors allow, which may be 1
		return []string{"--retained-executions=7", "--retained-per-caller=2"}
	case "drain-delay":
		return []string{"--drain-delay=1s"}
	case "allow-uid", "allow-group":
		return []string{"--" + s.Name + "=4711"}
	case "allow-host":
		return []string{"--allow-host=a"}
	case "allow-origin":
		return []string{"--allow-origin=https://a"}
	case "token-file":
		return []string{"--token-file=" + file("a "+secretA)}
	case "tls-cert", "tls-key":
		return []string{cert, key}
	case "tls-client-ca":
		return []string{cert, key, "--tls-client-ca=" + file(string(pair.Cert))}
	case "egress-allow":
		return []string{"--egress-allow=https://a"}
	case "egress-allow-private":
		return []string{"--egress-allow=https://a", "--egress-allow-private=10.0.0.0/8"}
	case "proxy":
		return []string{"--proxy=192.0.2.0/24"}
	case "log-level":
		return []string{"--log-level=debug"}
	}
	if d, err := time.ParseDuration(s.Value); err == nil && d > 0 {
		return []string{"--" + s.Name + "=" + (d / 2).String()}
	}
	n, err := strconv.Atoi(s.Value)
	if err != nil || n < 2 {
		t.Fatalf("--%s is %q, and nothing says what else it could be: it needs a case in another, daemon/compose_test.go", s.Name, s.Value)
	}
	return []string{"--" + s.Name + "=" + strconv.Itoa(n/2)}
}

// What says that a reload changes it changes something that a reload takes over. That each part acts on it is shown where
// the part is: TestReconfigure… of daemon/pool and daemon/server, TestReload… here.
func TestReloadableSettingsReachAPart(t *testing.T) {
	list, err := settings.Load(nil, []string{"EXECUTORD_WORKER_BINARY=/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(load(t))
	if err != nil {
		t.Fatal(err)
	}
	reloaded := func(args ...string) []any {
		t.Helper()
		s := load(t, args...)
		p, err := poolConfig(&s, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := d.serverConfig(&s)
		if err != nil {
			t.Fatal(err)
		}
		p.Direct, c.Admit, c.OnRefused = nil, nil, nil // functions cannot be compared; Direct is made of s.Egress
		c.MaxMessageBytes, c.DrainGrace = 0, 0         // Reconfigure does not take these
		return []any{p, c, s.Egress, s.DrainDelay, s.DrainGrace, s.StopTimeout, s.LogLevel}
	}
	before := reloaded()
	for _, s := range list.List() {
		if s.Reloadable && reflect.DeepEqual(reloaded(another(t, s)...), before) {
			t.Errorf("--%s says that a reload changes it, and nothing that a reload takes over is different", s.Name)
		}
	}
}
