package daemon

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/daemon/settings"
)

// parse reads a command line.
func parse(t *testing.T, args ...string) (settings.Settings, error) {
	t.Helper()
	var s settings.Settings
	parser, err := kong.New(&s, kong.Vars(settings.Defaults()), kong.Exit(func(int) { t.Error("the parser wants to exit") }))
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(args)
	return s, err
}

// The defaults are written in the tags, for the help; those of the pool are what is meant.
func TestDefaultsAreThoseOfThePool(t *testing.T) {
	s, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	got, err := poolConfig(&s, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := pool.Defaults()
	if got.Workers != want.Workers || got.Queue != want.Queue || got.QueueTimeout != want.QueueTimeout ||
		got.WorkerMaxExecutions != want.WorkerMaxExecutions || got.Limits != want.Limits || got.MaxLimits != want.MaxLimits {
		t.Errorf("defaults are %+v, those of the pool %+v", got, want)
	}
	if _, err := serverConfig(&s, "1", want.MaxLimits, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	if len(s.Listen) != 1 || s.Listen[0] != "unix:/run/executord/executord.sock" {
		t.Errorf("listens on %q", s.Listen)
	}
}

// Nothing is reached unless a pattern says so.
func TestEgressSettings(t *testing.T) {
	direct := func(args ...string) (bool, error) {
		s, err := parse(t, args...)
		if err != nil {
			return false, err
		}
		c, err := poolConfig(&s, nil)
		return c.Direct != nil, err
	}
	if allowed, err := direct(); allowed || err != nil {
		t.Errorf("by default: %v, %v", allowed, err)
	}
	if allowed, err := direct("--egress-allow=https://*.example.com,http://x:8080", "--egress-allow-private=10.0.0.0/8,fd00::/8"); !allowed || err != nil {
		t.Errorf("with patterns: %v, %v", allowed, err)
	}
	for _, args := range [][]string{
		{"--egress-allow=example.com"},
		{"--egress-allow=https://x/path"},
		{"--egress-allow=https://x", "--egress-allow-private=10.0.0.1"},
		{"--egress-allow-private=10.0.0.0/8"},
	} {
		if allowed, err := direct(args...); allowed || err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	t.Setenv("EXECUTORD_EGRESS_ALLOW", "https://example.com")
	if allowed, err := direct(); !allowed || err != nil {
		t.Errorf("by the variable: %v, %v", allowed, err)
	}
}

func TestFlagsAndVariables(t *testing.T) {
	t.Setenv("EXECUTORD_WORKERS", "7")
	t.Setenv("EXECUTORD_MAX_HEAP", "300")
	t.Setenv("EXECUTORD_ALLOW_UID", "5,6")
	s, err := parse(t, "--listen", "unix:/a", "--listen", "tcp://127.0.0.1:1", "--queue=3", "--default-cpu=20ms", "--max-tool-calls=9", "--log-level=debug")
	if err != nil {
		t.Fatal(err)
	}
	c, err := poolConfig(&s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Listen) != 2 || c.Workers != 7 || c.Queue != 3 || c.Limits.CPUMs != 20 || c.MaxLimits.HeapMiB != 300 ||
		c.MaxLimits.ToolCalls != 9 || len(s.AllowUID) != 2 || s.LogLevel != slog.LevelDebug {
		t.Errorf("%+v %+v", s, c)
	}
}

func TestSettingsAreRefused(t *testing.T) {
	for _, tc := range []struct{ flag, want string }{
		{"--default-cpu=0s", "--default-cpu"},
		{"--default-wall=-1s", "--default-wall"},
		{"--max-total=1us", "--max-total"},
		{"--max-heap=0", "--max-heap"},
		{"--max-log-lines=-3", "--max-log-lines"},
		{"--default-timers=0", "--default-timers"},
		{"--max-stack=9000", "largest stackKiB is 9000 KiB"},
		{"--max-value-depth=100000", "largest valueDepth is 100000"},
		{"--queue-per-caller=-1", "queue per identity"},
		{"--max-sessions=0", "--max-sessions"},
		{"--max-message=0", "--max-message"},
		{"--max-message=33554432", "the unit is MiB"},
		{"--ping-interval=0s", "--ping-interval"},
		{"--drain-grace=-1s", "--drain-grace"},
		{"--worker-binary=/nowhere/none", "worker binary"},
	} {
		t.Run(tc.flag, func(t *testing.T) {
			s, err := parse(t, tc.flag)
			if err == nil {
				_, err = New(s, "1", slog.New(slog.DiscardHandler))
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
	s, _ := parse(t)
	s.DrainGrace = time.Second
	if _, err := serverConfig(&s, "1", pool.Defaults().MaxLimits, nil); err != nil {
		t.Error(err)
	}
}
