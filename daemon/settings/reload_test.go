package settings

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// reloadable marks settings for one test.
func reloadable(t *testing.T, names ...string) {
	t.Helper()
	for i := range declared {
		was := declared[i].reload
		declared[i].reload = slices.Contains(names, declared[i].name)
		t.Cleanup(func() { declared[i].reload = was })
	}
}

func TestReload(t *testing.T) {
	reloadable(t, "queue", "queue-per-caller", "drain-grace")
	file := writeFile(t, "EXECUTORD_QUEUE=3\nEXECUTORD_MAX_SESSIONS=3\n")
	args, environ := []string{"--settings-file", file}, []string{"EXECUTORD_WORKER_BINARY=/bin/true"}
	l, err := Load(args, environ)
	if err != nil {
		t.Fatal(err)
	}
	reload := func(text string, apply func(Settings) error) (Changes, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return l.Reload(args, environ, apply)
	}
	var applied Settings
	take := func(s Settings) error { applied = s; return nil }

	changes, err := reload("EXECUTORD_QUEUE=5\n\nEXECUTORD_MAX_SESSIONS=4\n", take)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Changes{[]string{"queue", "queue-per-caller"}, []string{"max-sessions", "max-caller-sessions", "max-caller-executions"}}); !reflect.DeepEqual(changes, want) {
		t.Errorf("changes are %+v, want %+v", changes, want)
	}
	if applied.Queue != 5 || applied.QueueShare != 5 || applied.MaxSessions != 3 || !reflect.DeepEqual(applied, l.Settings()) {
		t.Errorf("applied %+v, in force are %+v", applied, l.Settings())
	}
	if got := shown(t, l, "queue"); got.Value != "5" || !got.ChangedSinceBoot || !got.Reloadable || got.AfterRestart != nil {
		t.Errorf("queue is %+v", got)
	}
	if got := shown(t, l, "max-sessions"); got.Value != "3" || got.ChangedSinceBoot || got.Reloadable || got.Line != 2 || got.AfterRestart == nil || *got.AfterRestart != "4" {
		t.Errorf("max-sessions is %+v", got)
	}

	// On any fault everything stays.
	before := l.List()
	for name, text := range map[string]string{
		"a bad value":                        "EXECUTORD_QUEUE=6\nEXECUTORD_MAX_HEAP=0\n",
		"one that is bad beside what stays":  "EXECUTORD_STOP_TIMEOUT=5m\nEXECUTORD_DRAIN_GRACE=4m\n",
		"a file that cannot be read":         "EXECUTORD_QUEUE\n",
		"a value that cannot be carried out": "EXECUTORD_QUEUE=6\n",
	} {
		_, err := reload(text, func(Settings) error { return errors.New("it cannot be done") })
		var faults Faults
		if err == nil || errors.As(err, &faults) == strings.Contains(name, "carried out") {
			t.Errorf("%s: got %v", name, err)
		}
		if after := l.List(); !reflect.DeepEqual(after, before) {
			t.Errorf("%s: the settings are %+v now", name, after)
		}
	}

	// Back to where it was.
	if changes, err = reload("EXECUTORD_QUEUE=3\nEXECUTORD_MAX_SESSIONS=3\n", take); err != nil || len(changes.NeedRestart) != 0 {
		t.Errorf("got %+v, %v", changes, err)
	}
	for _, name := range []string{"queue", "max-sessions"} {
		if got := shown(t, l, name); got.ChangedSinceBoot || got.AfterRestart != nil {
			t.Errorf("%s is %+v", name, got)
		}
	}
	if changes, err = reload("EXECUTORD_QUEUE=3\n\n\nEXECUTORD_MAX_SESSIONS=3\n", take); err != nil || changes.Applied != nil || changes.NeedRestart != nil {
		t.Errorf("nothing changed: got %+v, %v", changes, err)
	}
	if got := shown(t, l, "max-sessions"); got.Line != 4 {
		t.Errorf("max-sessions is %+v", got)
	}
}

// The methods may be called at once.
func TestReloadWhileListed(t *testing.T) {
	reloadable(t, "queue", "queue-per-caller")
	l, err := load()
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	for _, queue := range []string{"--queue=1", "--queue=2"} {
		work.Go(func() {
			for range 20 {
				if _, err := l.Reload([]string{queue}, []string{"EXECUTORD_WORKER_BINARY=/bin/true"}, func(Settings) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
		work.Go(func() {
			for range 20 {
				if n := len(l.List()); n != len(declared) || l.Settings().Workers == 0 {
					t.Errorf("%d settings are listed", n)
				}
			}
		})
	}
	work.Wait()
}
