package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestLockNamesNoHost keeps the registry a matter of whoever runs this.
func TestLockNamesNoHost(t *testing.T) {
	lock, err := manifest.ReadFile("package-lock.json")
	if err != nil || bytes.Contains(lock, []byte(`"resolved"`)) {
		t.Errorf("package-lock.json names a host (npm install --package-lock-only --omit-lockfile-registry-resolved): %v", err)
	}
}

func TestTurn(t *testing.T) {
	var asked, under, most atomic.Int32
	ask := func(context.Context, string) (int, error) {
		asked.Add(1)
		for now, m := under.Add(1), most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		time.Sleep(time.Millisecond)
		under.Add(-1)
		return 7, nil
	}
	r, err := turnOf(ask)(t.Context(), job{Want: 7, Count: 20, ForMs: 60_000, Lanes: 2})
	if err != nil || len(r.WallMs) != 20 || asked.Load() != 20 || most.Load() > 2 {
		t.Errorf("%d asked, %d timed, %d at once, %v", asked.Load(), len(r.WallMs), most.Load(), err)
	}
	if _, err := turnOf(ask)(t.Context(), job{Want: 8, Count: 20, ForMs: 60_000, Lanes: 2}); err == nil {
		t.Error("a wrong value is taken")
	}
	if r, err := turnOf(ask)(t.Context(), job{Want: 7, Count: 20, ForMs: 0, Lanes: 2}); err != nil || len(r.WallMs) != 0 {
		t.Errorf("without time %d ran, %v", len(r.WallMs), err)
	}
	broken := errors.New("broken")
	fails := func(context.Context, string) (int, error) { return 0, broken }
	if _, err := turnOf(fails)(t.Context(), job{Count: 20, ForMs: 60_000, Lanes: 4}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// TestDriver runs the driver for node with an engine that knows two programs.
func TestDriver(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	h := &home{packages: filepath.Join(t.TempDir(), "node_modules"), run: t.TempDir()}
	if err := os.MkdirAll(filepath.Dir(h.node()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(node, h.node()); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(h.run, drivers); err != nil {
		t.Fatal(err)
	}
	const engine = `export const run = async (code, tools) =>
		code === "text" ? "x".repeat(await tools.len(new Uint8Array(5))) : tools.echo(Number(code));`
	if err := os.WriteFile(h.driver("fake.mjs"), []byte(engine), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := startNode(t.Context(), h, "fake")
	if err != nil {
		t.Fatal(err)
	}
	defer e.stop()
	for _, c := range []struct {
		job  job
		want int // executions; -1 for a fault
	}{
		{job{Code: "3", Want: 3, Count: 9, ForMs: 60_000, Lanes: 4, GapMs: 1}, 9},
		{job{Code: "text", Want: 5, Count: 1, ForMs: 60_000, Lanes: 1}, 1},
		{job{Code: "3", Want: 4, Count: 9, ForMs: 60_000, Lanes: 1}, -1},
		{job{Code: "3", Want: 3, Count: 9, ForMs: 0, Lanes: 1}, 0},
	} {
		r, err := e.turn(t.Context(), c.job)
		if (err != nil) != (c.want < 0) || err == nil && len(r.WallMs) != c.want {
			t.Errorf("%+v: %d ran, %v", c.job, len(r.WallMs), err)
		}
	}
	if e.cpu() == 0 {
		t.Error("the driver used nothing")
	}
}

func TestFits(t *testing.T) {
	if !fits(20*time.Second, 2, 30*time.Second) || fits(20*time.Second, 2, 29*time.Second) {
		t.Error("a third turn of 10 s ends after 30 s")
	}
}

// TestBars: where executord costs a third of each peer every bar is met, where it costs the same those that allow it.
func TestBars(t *testing.T) {
	for _, c := range []struct {
		ours, want string
		scale      float64
	}{{"a third", "21 met, 0 missed", 1. / 3}, {"the same", "4 met, 17 missed", 1}} {
		f := newFigures()
		engines := []*engine{{name: "executord"}, {name: "isolated-vm"}, {name: "workerd"}}
		for _, e := range engines {
			cost := 6.0
			if e.name == "executord" {
				cost *= c.scale
			}
			for _, p := range programs {
				at := cell{e.name, p.name}
				f.cpuMs[at], f.wallMs[at], f.rate[at] = []float64{cost}, []float64{cost}, []float64{1000 / cost}
			}
		}
		var b strings.Builder
		if err := writeReport(&b, engines, f, []float64{1}, floor{0.01, 0.02}); err != nil || !strings.Contains(b.String(), c.want) {
			t.Errorf("with %s: %v, not %s in\n%s", c.ours, err, c.want, b.String())
		}
	}
}

// TestAlone: without peers there are figures and no bars.
func TestAlone(t *testing.T) {
	f := newFigures()
	f.cpuMs[cell{"executord", oneCall}] = []float64{1.25}
	var b strings.Builder
	err := writeReport(&b, []*engine{{name: "executord"}}, f, []float64{1}, floor{0.01, 0.02})
	if err != nil || !strings.Contains(b.String(), "1.25") || strings.Contains(b.String(), "missed") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestNotReady: a server that cannot begin says why.
func TestNotReady(t *testing.T) {
	s, err := spawn(t.Context(), "sh", "-c", "echo no luck >&2; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	err = s.ready(func(context.Context) error { return errors.New("nobody there") })
	if err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("got %v", err)
	}
}

// TestMain lets the tests' own program stand for a hop.
func TestMain(m *testing.M) {
	if name := os.Getenv(hopEnv); name != "" {
		hop(name)
		return
	}
	os.Exit(m.Run())
}

func TestFloor(t *testing.T) {
	least, err := measureFloor(t.Context())
	if err != nil || least.cpuMs <= 0 || least.wallMs <= 0 {
		t.Errorf("%+v, %v", least, err)
	}
}
