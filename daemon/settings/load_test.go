package settings

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
)

// shown is the setting of that name.
func shown(t *testing.T, l *Loaded, name string) Setting {
	t.Helper()
	for _, s := range l.List() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no %s", name)
	return Setting{}
}

// A flag comes before a variable, that before the file, and that before the default.
func TestPrecedence(t *testing.T) {
	file := writeFile(t, "# ours\nEXECUTORD_QUEUE=3\nEXECUTORD_QUEUE=30\nEXECUTORD_SPARE_WORKERS=3\nEXECUTORD_MAX_SESSIONS=3\n")
	l, err := Load([]string{"--queue=1", "--queue=10", "--settings-file=" + file},
		[]string{"EXECUTORD_QUEUE=20", "EXECUTORD_SPARE_WORKERS=2", "EXECUTORD_SPARE_WORKERS=9", "EXECUTORD_WORKER_BINARY=/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Setting{
		{Name: "queue", Value: "10", Source: Flag},
		{Name: "spare-workers", Value: "2", Source: Variable},
		{Name: "max-sessions", Value: "3", Source: File, File: file, Line: 5},
		{Name: "drain-grace", Value: "10s", Source: Default},
		{Name: "settings-file", Value: file, Source: Flag},
	} {
		got := shown(t, l, want.Name)
		if got.Value != want.Value || got.Source != want.Source || got.File != want.File || got.Line != want.Line {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// A switch may stand alone, be turned round, or have a value.
func TestSwitches(t *testing.T) {
	for _, tc := range []struct {
		args []string
		file string
		want bool
	}{
		{nil, "", true},
		{nil, "EXECUTORD_METRICS=false", false},
		{[]string{"--metrics"}, "EXECUTORD_METRICS=false", true},
		{[]string{"--no-metrics"}, "EXECUTORD_METRICS=true", false},
		{[]string{"--metrics=false"}, "", false},
		{[]string{"--metrics", "--no-metrics"}, "", false},
	} {
		l, err := load(append(tc.args, "--settings-file="+writeFile(t, tc.file))...)
		if err != nil {
			t.Errorf("%q: %v", tc.args, err)
		} else if got := l.Settings().Metrics; got != tc.want {
			t.Errorf("%q with %q: %v", tc.args, tc.file, got)
		}
	}
}

// The last of several in a file counts, and the variable names the file as well as the flag does.
func TestSettingsFile(t *testing.T) {
	file := writeFile(t, "EXECUTORD_QUEUE=3\nEXECUTORD_QUEUE=30\nOTEL_SERVICE_NAME='my service'\n")
	l, err := Load(nil, []string{"EXECUTORD_SETTINGS_FILE=" + file, "EXECUTORD_WORKER_BINARY=/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	if s := l.Settings(); s.Queue != 30 || s.QueueShare != 30 {
		t.Errorf("got %+v", s)
	}
	if got := l.Variables(); !maps.Equal(got, map[string]string{"OTEL_SERVICE_NAME": "my service"}) {
		t.Errorf("other variables are %v", got)
	}
}

// Defaults follow what they depend on.
func TestDerivedDefaults(t *testing.T) {
	l, err := load("--workers=3")
	if err != nil {
		t.Fatal(err)
	}
	if s := l.Settings(); s.Queue != 12 || s.QueueShare != 12 {
		t.Errorf("got %+v", s)
	}
	for listen, want := range map[string]string{
		"unix:/run/executord/executord.sock": "unix:/run/executord/admin.sock",
		"tcp://127.0.0.1:0,unix:///tmp/s":    "unix:/tmp/admin.sock",
		"tcp://127.0.0.1:0":                  "",
	} {
		l, err := load("--listen=" + listen)
		if err != nil || l.Settings().AdminListen != want {
			t.Errorf("with --listen=%s the operator connects to %q, %v", listen, l.Settings().AdminListen, err)
		}
	}
	if got := shown(t, l, "queue"); got.Value != "12" || got.Source != Default || got.Default != "four for each of --workers" {
		t.Errorf("got %+v", got)
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, tc := range []struct {
		args string
		want error
	}{
		{"--help", ErrHelp},
		{"-h", ErrHelp},
		{"--nope --help", ErrHelp},
		{"a b --help", ErrHelp},
		{"--version", ErrVersion},
		{"--workers=3 --version", ErrVersion},
	} {
		if _, err := load(strings.Fields(tc.args)...); err != tc.want {
			t.Errorf("%s: got %v", tc.args, err)
		}
	}
	if _, err := load("--", "--help"); err == nil || errors.Is(err, ErrHelp) {
		t.Errorf("an argument: got %v", err)
	}
}

// The names in JSON are what the admin app and executorctl promise.
func TestSettingAsJSON(t *testing.T) {
	l, err := load("--drain-grace=20s")
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(shown(t, l, "drain-grace"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"drain-grace","variable":"EXECUTORD_DRAIN_GRACE","group":"stop","value":"20s","default":"10s","unit":"duration",` +
		`"source":"flag","reloadable":true,"changedSinceBoot":false,"help":"How long running programs may go on when the service stops"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
