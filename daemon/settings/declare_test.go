package settings

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/ipc/worker"
)

// Every setting is declared in full.
func TestDeclarations(t *testing.T) {
	names := map[string]bool{}
	for _, d := range declared {
		if names[d.name] || d.name == "" || strings.Trim(d.name, "abcdefghijklmnopqrstuvwxyz-") != "" {
			t.Errorf("--%s is no name, or there twice", d.name)
		}
		names[d.name] = true
		if want := ownPrefix + strings.ToUpper(strings.ReplaceAll(d.name, "-", "_")); d.variable != want {
			t.Errorf("the variable of --%s is %q, must be %s", d.name, d.variable, want)
		}
		if d.help == "" || strings.HasSuffix(d.help, ".") || strings.Contains(d.help, "\n") || strings.Contains(d.help, "Default:") {
			t.Errorf("--%s needs one line of help without a full stop and its default, has %q", d.name, d.help)
		}
		if d.def == "" && d.auto == "" {
			t.Errorf("--%s does not say what its default is", d.name)
		}
		if !slices.ContainsFunc(groups, func(g struct{ key, title string }) bool { return g.key == d.group }) {
			t.Errorf("--%s is in no group: %q", d.name, d.group)
		}
		if d.typ.Kind() != reflect.Bool && len(d.enum) == 0 && (d.least < 0 || d.most <= d.least) {
			t.Errorf("--%s needs bounds, has %d..%d", d.name, d.least, d.most)
		}
		if d.isList() != (d.sep == ",") {
			t.Errorf("the entries of --%s are separated by %q", d.name, d.sep)
		}
		zero := reflect.New(d.typ).Elem()
		if d.isList() {
			zero = reflect.New(d.typ.Elem()).Elem()
		}
		numeric := len(d.enum) == 0 && (zero.CanInt() || zero.CanUint())
		if numeric != (d.unit != "") {
			t.Errorf("the unit of --%s, of type %s, is %q", d.name, d.typ, d.unit)
		}
		if !numeric && d.typ.Kind() != reflect.Bool && d.placeholder == "N" {
			t.Errorf("--%s is no number: it needs a placeholder that says what it is, as FILE", d.name)
		}
	}
}

// The defaults are within their bounds, and are what they look like.
func TestDefaultsAreValid(t *testing.T) {
	s := Defaults()
	s.WorkerBinary = "/bin/true"
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	for _, d := range declared {
		if got := encode(d.in(&s)); d.def != "" && got != d.def {
			t.Errorf("the default of --%s is written %s, and reads %s", d.name, d.def, got)
		}
	}
}

// A worker that lives must not be taken for a silent one.
func TestHeartbeatTimeoutLeavesTimeForTwo(t *testing.T) {
	if d := find("heartbeat-timeout"); time.Duration(d.least) < 2*worker.HeartbeatInterval {
		t.Errorf("it may be %s, workers speak every %s", time.Duration(d.least), worker.HeartbeatInterval)
	}
}

// What is shown can be given back.
func TestValuesReadAsTheyAreShown(t *testing.T) {
	l, err := load("--listen=unix:/a,tcp://127.0.0.1:80", "--allow-uid=1", "--allow-uid=2,3", "--egress-allow=https://*.x:*,http://y",
		"--egress-allow-private=10.0.0.0/8,fd00::/8", "--log-level=debug", "--max-total=90m", "--queue-timeout=1m1ms")
	if err != nil {
		t.Fatal(err)
	}
	s := l.Settings()
	var args []string
	want := map[string]string{
		"listen": "unix:/a,tcp://127.0.0.1:80", "allow-uid": "1,2,3", "egress-allow": "https://*.x:*,http://y",
		"egress-allow-private": "10.0.0.0/8,fd00::/8", "log-level": "debug", "max-total": "1h30m", "queue-timeout": "1m0.001s",
	}
	for _, setting := range l.List() {
		args = append(args, "--"+setting.Name+"="+setting.Value)
		if text, is := want[setting.Name]; is && text != setting.Value {
			t.Errorf("--%s is shown as %s, want %s", setting.Name, setting.Value, text)
		}
	}
	again, err := load(args...)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Settings(); !reflect.DeepEqual(got, s) {
		t.Errorf("got %+v, want %+v", got, s)
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	d := declare(reflect.TypeFor[struct {
		Key    string `name:"key" env:"EXECUTORD_KEY" secret:""`
		Switch bool   `name:"switch" env:"EXECUTORD_SWITCH"`
	}]())
	key := reflect.New(d[0].typ).Elem()
	if got := d[0].show(key); got != "" {
		t.Errorf("no secret is shown as %q", got)
	}
	key.SetString("hunter2")
	if got := d[0].show(key); got != "set" {
		t.Errorf("a secret is shown as %q", got)
	}
	r := resolved{}
	if err := r.fault(&d[0], "hunter2", "it is wrong"); strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the fault tells it: %v", err)
	}
}

// TestEverySettingIsUsed: each field is read by the program that loads the settings, or by the service that is made of them.
func TestEverySettingIsUsed(t *testing.T) {
	var source strings.Builder
	for _, pattern := range []string{"../*.go", "../../cmd/executord/*.go", "group.go", "load.go", "reload.go", "settings.go", "tls.go", "tokens.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(text)
		}
	}
	for f := range reflect.TypeFor[Settings]().Fields() {
		used := regexp.MustCompile(`\.` + f.Name + `\b|"` + f.Tag.Get("name") + `"\]?[,)]`)
		if !used.MatchString(source.String()) {
			t.Errorf("nothing is made of %s; daemon/compose.go is the place", f.Name)
		}
	}
}
