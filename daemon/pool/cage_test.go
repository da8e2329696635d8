package pool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/worker"
)

// layersOf gives what a worker has and what it has not; together they have to be all layers there are.
func layersOf(t *testing.T, w WorkerInfo) (layers []string, missing map[string]string) {
	t.Helper()
	missing = map[string]string{}
	all := slices.Clone(w.Layers)
	for _, entry := range w.Missing {
		layer, reason, _ := strings.Cut(entry, ": ")
		if reason == "" {
			t.Errorf("there is no reason for %q", entry)
		}
		missing[layer] = reason
		all = append(all, layer)
	}
	known := worker.Layers()
	slices.Sort(all)
	slices.Sort(known)
	if !slices.Equal(all, known) {
		t.Errorf("layers in force %q and missing %q are not all of %q", w.Layers, w.Missing, known)
	}
	return w.Layers, missing
}

// expected are the layers that this machine has to give: all but those that the test finds by its own means that it cannot.
func expected(t *testing.T) []string {
	t.Helper()
	list := worker.Layers()
	without := func(why string, layers ...string) {
		t.Logf("this machine has no %q: %s", layers, why)
		list = slices.DeleteFunc(list, func(l string) bool { return slices.Contains(layers, l) })
	}
	namespaces := exec.Command("true")
	namespaces.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
	}
	if err := namespaces.Run(); err != nil {
		without(err.Error(), worker.LayerUser, worker.LayerNetwork, worker.LayerPID, worker.LayerIPC, worker.LayerUTS, worker.LayerRoot)
	}
	if version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1); errno != 0 || version == 0 {
		without(errno.Error(), worker.LayerLandlock)
	}
	return list
}

// TestRealWorkerIsConfined looks at the process from outside, whatever it says.
func TestRealWorkerIsConfined(t *testing.T) {
	c := testConfig()
	c.RequireLayers = expected(t)
	b := realBench(t, c)
	w := b.Workers()[0]
	layers, missing := layersOf(t, w)
	t.Logf("in force: %q\nmissing: %q", layers, missing)
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", w.PID))
	if len(tasks) < 4 {
		t.Fatalf("%d threads", len(tasks))
	}
	for _, file := range tasks {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{
			"NoNewPrivs:\t1", "Seccomp:\t2", "CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
			"CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000",
		} {
			if !strings.Contains(string(text), "\n"+line+"\n") {
				t.Errorf("%s has no line %q:\n%s", file, line, text)
			}
		}
		if os.Geteuid() == 0 && !strings.Contains(string(text), "\nUid:\t65534\t65534\t65534\t65534\n") {
			t.Errorf("a thread is not nobody:\n%s", text)
		}
	}
	if os.Geteuid() != 0 {
		t.Log("only root can look at the rest")
		return
	}
	for _, space := range []string{"user", "net", "pid", "ipc", "uts", "mnt"} {
		ours, _ := os.Readlink("/proc/self/ns/" + space)
		its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", w.PID, space))
		if err != nil || its == ours {
			t.Errorf("its %s namespace is %s, ours %s, %v", space, its, ours, err)
		}
	}
	root := fmt.Sprintf("/proc/%d/root", w.PID)
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 0 {
		t.Errorf("its root has %v, %v", entries, err)
	}
	if err := os.WriteFile(root+"/x", nil, 0o600); err == nil {
		t.Error("its root can be written to")
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", w.PID))
	if err != nil || bytes.Count(mounts, []byte("\n")) != 1 {
		t.Errorf("it sees the mounts %q, %v", mounts, err)
	}
	if slack, _ := os.ReadFile(fmt.Sprintf("/proc/%d/timerslack_ns", w.PID)); strings.TrimSpace(string(slack)) != "50000" {
		t.Errorf("its main thread has a timer slack of %s ns", slack)
	}
}

// TestK11LayersAreReported: a process that may do less has workers with less, which they say, the log warns of once, and
// whoever requires more does not start.
func TestK11LayersAreReported(t *testing.T) {
	if testing.Short() {
		t.Skip("it is the isolation of processes")
	}
	namespaces := []string{worker.LayerNetwork, worker.LayerPID, worker.LayerIPC, worker.LayerUTS}
	for _, x := range []struct {
		name    string
		missing []string
	}{
		{"unprivileged", nil},
		{"root without user namespaces", []string{worker.LayerUser}},
		{"nothing", append([]string{worker.LayerUser, worker.LayerRoot}, namespaces...)},
	} {
		t.Run(x.name, func(t *testing.T) {
			if have := expected(t); !slices.Contains(have, worker.LayerUser) {
				t.Skip("without a user namespace nothing can be taken away")
			}
			r := restricted(t, x.name)
			_, missing := layersOf(t, r.Worker)
			for _, layer := range x.missing {
				if missing[layer] == "" {
					t.Errorf("%s is in force: %q", layer, r.Worker.Layers)
				}
			}
			delete(missing, worker.LayerID) // within a user namespace that has no second user nobody can become one
			if len(missing) != len(x.missing) {
				t.Errorf("missing are %q, want %q", missing, x.missing)
			}
			if warnings := strings.Count(r.Log, "not isolated as far as they could be"); warnings > 1 || warnings == 0 && len(r.Worker.Missing) > 0 {
				t.Errorf("%d warnings:\n%s", warnings, r.Log)
			}
			for _, entry := range r.Worker.Missing {
				if !strings.Contains(r.Log, entry) {
					t.Errorf("%q is not in the log:\n%s", entry, r.Log)
				}
			}
			if want := "a required layer of isolation is not in force: " + worker.LayerUser; len(x.missing) > 0 && !strings.Contains(r.Required, want) {
				t.Errorf("with all layers required: %q, want %q", r.Required, want)
			}
			t.Logf("missing: %q", r.Worker.Missing)
		})
	}
}

// restriction is what a process that may do little says of its worker.
type restriction struct {
	Worker   WorkerInfo
	Log      string
	Required string // the error where all layers are required
}

func restricted(t *testing.T, how string) (r restriction) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-restricted", how, testbin.Worker(t))
	cmd.Stderr = t.Output()
	inside := 0
	if how == "unprivileged" {
		inside = 1000
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: inside, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: inside, HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return r
}

// restrictedMain is a process that gives up privileges and then starts a pool.
func restrictedMain(how, binary string) {
	if how != "unprivileged" && how != "done" {
		check(os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0))
	}
	if how == "nothing" { // what a process may not have, a program that it becomes has not
		for c := range uintptr(64) {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		}
		check(syscall.Exec("/proc/self/exe", []string{"pool.test", "-restricted", "done", binary}, nil))
	}
	var log bytes.Buffer
	c := testConfig()
	c.Workers = 2
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r := restriction{Worker: confinedWorker(c, binary)}
	r.Log = strings.ReplaceAll(log.String(), `\"`, `"`)
	c.RequireLayers = worker.Layers()
	if p, err := confinedPool(c, binary); err != nil {
		r.Required = err.Error()
	} else {
		check(p.Close())
	}
	check(json.NewEncoder(os.Stdout).Encode(r))
	os.Exit(0)
}

func confinedWorker(c Config, binary string) WorkerInfo {
	p, err := confinedPool(c, binary)
	check(err)
	w := p.Workers()[0]
	check(p.Close())
	return w
}

func confinedPool(c Config, binary string) (*Pool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	l, err := NewChild(ctx, ChildConfig{Path: binary})
	check(err)
	c.Launcher = l
	p, err := New(c)
	check(err)
	if err := p.WaitReady(ctx); err != nil {
		check(p.Close())
		return nil, err
	}
	return p, nil
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// TestRequiredLayers: a worker that has not what is required is refused at once, and a layer that there is not is a fault
// of the configuration.
func TestRequiredLayers(t *testing.T) {
	c := testConfig()
	c.RequireLayers = []string{worker.LayerProcess, worker.LayerSeccomp}
	b := newBench(t, c, realOutside()) // over the fake, which confines nothing
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := b.WaitReady(ctx); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "a required layer of isolation is not in force: seccomp") {
		t.Errorf("got %v", err)
	}
	if s := b.Stats(); s.Totals.Started != 0 {
		t.Errorf("%d workers were started", s.Totals.Started)
	}
	c.RequireLayers = []string{"armour"}
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), `"armour"`) {
		t.Errorf("got %v", err)
	}
}

// TestK5ExecutableMemory: a parent that is denied memory both writable and executable cannot have children that compile,
// and says so. As a unit of systemd it has none.
func TestK5ExecutableMemory(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "-denied", testbin.Worker(t))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	switch text := string(out); {
	case text == "unsupported":
		t.Skip("this kernel cannot deny it (PR_SET_MDWE, Linux 6.3)")
	case !strings.Contains(text, "cannot launch workers") || !strings.Contains(text, "MemoryDenyWriteExecute"):
		t.Errorf("got %q", text)
	}
}

func deniedMain(binary string) {
	if unix.Prctl(unix.PR_SET_MDWE, unix.PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) != nil {
		fmt.Print("unsupported")
		os.Exit(0)
	}
	_, err := NewChild(context.Background(), ChildConfig{Path: binary})
	fmt.Print(err)
	os.Exit(0)
}

// TestForkedProcessesDieWithTheWorker: what an attacker started in spite of the filter is gone with the process.
func TestForkedProcessesDieWithTheWorker(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("only root sees the namespaces of others")
	}
	x := redTeam(t, "unsealed")
	spaces := map[string]bool{}
	for _, w := range x.Workers() {
		space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", w.PID))
		if err != nil {
			t.Fatal(err)
		}
		spaces[space] = true
	}
	inside := func() (n int) {
		links, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
		for _, link := range links {
			if space, _ := os.Readlink(link); spaces[space] {
				n++
			}
		}
		return n
	}
	if n := inside(); n != 2 {
		t.Fatalf("%d processes in the namespaces of two workers", n)
	}
	bomb := slices.IndexFunc(testbin.Attempts, func(a testbin.Attempt) bool { return a.Name == "fork-bomb" })
	if got := x.attack(testbin.Attempts[bomb]); !testbin.EndsBy(got, testbin.Attempts[bomb].Unsealed) {
		t.Fatalf("the attack ended by %q", got)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if n := inside(); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}
