package box

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/executord/executord/daemon/admin"
	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"

	"golang.org/x/sys/unix"
)

const (
	service   = "executord.service"
	adminPath = "/run/executord/admin.sock"
)

// sh runs a line of shell as root, which has to succeed, and returns what it prints.
func sh(t *testing.T, line string) string {
	t.Helper()
	return strings.TrimSpace(run(t, "/bin/sh", "-c", line))
}

func mainPID(t *testing.T) int {
	t.Helper()
	return pidOf(t, service)
}

// workers are the units of workers that are there.
func workers(t *testing.T) []string {
	t.Helper()
	return strings.Fields(sh(t, "systemctl list-units --all --plain --no-legend 'executor-worker@*.service' | awk '{print $1}'"))
}

// units has the service installed and stopped, its units changed by these additions until the test ends: unit, text, …
func units(t *testing.T, additions ...string) {
	t.Helper()
	present(t) // which begins by taking away what was added
	for i := 0; i < len(additions); i += 2 {
		dropIn(t, additions[i], additions[i+1])
	}
	installed(t)
	t.Cleanup(func() {
		if t.Failed() {
			lines := strings.Split(journal(t, service, "executor-worker@*", "executord.socket"), "\n")
			t.Log(strings.Join(lines[max(0, len(lines)-60):], "\n"))
		}
		_, _ = try(t, "systemctl", "stop", service)
	})
}

func ctx(t *testing.T) context.Context {
	t.Helper()
	c, cancel := context.WithTimeout(t.Context(), 30*time.Second*pace())
	t.Cleanup(cancel)
	return c
}

// dial opens a session; an emulated machine may take longer to start the service than a client waits.
func dial(t *testing.T) (c *client.Client) {
	t.Helper()
	eventually(t, "a session opens", func() bool {
		var err error
		if c, err = client.Dial(ctx(t), "unix:"+socketPath); err != nil {
			t.Log(err)
		}
		return err == nil
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func program(code string) executor.Request {
	return executor.Request{Execute: protocol.Execute{Code: code}}
}

// works runs a program.
func works(t *testing.T) {
	t.Helper()
	c := dial(t)
	o, err := c.Execute(ctx(t), program("6 * 7"))
	if err == nil {
		err = o.Err()
	}
	if err != nil || string(o.Value) != "42" {
		t.Fatalf("6 * 7: %v", err)
	}
	_ = c.Close()
}

func TestUnitsAreValid(t *testing.T) {
	units(t)
	out, status := try(t, "/bin/sh", "-c", "systemd-analyze verify --man=no executord.service executord.socket executord-tcp.socket executord-admin.socket executor-worker.socket executor-worker@.service executord-workers.slice")
	if out != "" || status != 0 {
		t.Errorf("status %d\n%s", status, out)
	}
}

// Exposure is what systemd-analyze finds of what a unit may still do, from 0 to 10.
func TestExposure(t *testing.T) {
	units(t)
	works(t)
	for unit, most := range map[string]float64{service: 1.5, workers(t)[0]: 0.5} {
		out := sh(t, "systemd-analyze security --no-pager "+unit+" | grep -o 'Overall exposure level for .*'")
		found := regexp.MustCompile(`: ([0-9.]+) `).FindStringSubmatch(out)
		if found == nil {
			t.Fatal(out)
		}
		if got, _ := strconv.ParseFloat(found[1], 64); got > most {
			t.Errorf("%s: %g, want at most %g", unit, got, most)
		}
		t.Log(out)
	}
}

// The first connection starts the service, which is ready only once a program has run.
func TestStartsByItsSocket(t *testing.T) {
	units(t)
	if state := show(t, service, "ActiveState"); state != "inactive" {
		t.Fatalf("it is %s before anybody came", state)
	}
	works(t)
	if out := sh(t, "systemctl is-active "+service); out != "active" {
		t.Error(out)
	}
	if status := show(t, service, "StatusText"); status != "Serving" {
		t.Errorf("STATUS is %q", status)
	}
	log := sh(t, "journalctl -q -b -o cat -u "+service)
	if !strings.Contains(log, "listening") {
		t.Error(log)
	}
	// Without workers that work it never becomes ready, and says why.
	units(t, "executor-worker@.service", "[Service]\nExecStart=\nExecStart=/bin/false\n")
	sh(t, "systemctl start --no-block "+service)
	eventually(t, "it fails", func() bool { return show(t, service, "NRestarts") != "0" })
	if out, _ := try(t, "/bin/sh", "-c", "systemctl is-active "+service); out == "active" {
		t.Error("it is active")
	}
}

// S1, S3: a restart leaves the sockets where they are, and all of them are served.
func TestS1S3SocketsStay(t *testing.T) {
	units(t)
	works(t)
	before := sh(t, "stat -c %i "+socketPath+" "+adminPath)
	for range 3 {
		sh(t, "systemctl restart "+service)
		works(t)
		if status := operate(t, "/v1/status"); !json.Valid([]byte(status)) {
			t.Error(status)
		}
	}
	sh(t, "systemctl stop "+service)
	if after := sh(t, "stat -c %i "+socketPath+" "+adminPath); after != before {
		t.Errorf("the sockets were %s, are %s", before, after)
	}
	works(t)
}

// operate asks the admin app.
func operate(t *testing.T, path string) string {
	t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", adminPath)
	}}}
	r, err := http.NewRequestWithContext(ctx(t), http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v\n%s", path, answer.Status, err, text)
	}
	return string(text)
}

// S7: callers that hammer at a service that crashes do not kill the socket for good.
func TestS7SocketSurvivesACrashLoop(t *testing.T) {
	units(t, service, "[Service]\nExecStart=\nExecStart=/bin/false\n")
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(60 * time.Millisecond) {
		if c, err := net.Dial("unix", socketPath); err == nil {
			_ = c.Close()
		}
	}
	sh(t, "rm -r /run/systemd/system/executord.service.d; systemctl daemon-reload")
	if state := show(t, "executord.socket", "ActiveState"); state != "active" {
		t.Fatalf("the socket is %s", state)
	}
	works(t)
}

// S9: who comes and leaves at once leaves nothing behind.
func TestS9LeavingIsNoFault(t *testing.T) {
	units(t)
	works(t)
	for range 100 {
		for _, path := range []string{socketPath, adminPath, "/run/executord/worker.sock"} {
			c, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
		}
	}
	works(t)
	eventually(t, "only the pool's workers are left", func() bool { return len(workers(t)) <= 8 })
	if out := sh(t, "systemctl --failed --plain --no-legend"); out != "" {
		t.Error(out)
	}
}

// S13: the watchdog hears more than the first sign of life, also of a service that is merely busy.
func TestS13WatchdogIsFed(t *testing.T) {
	units(t, service, "[Service]\nWatchdogSec=2\n")
	works(t)
	pid := mainPID(t)
	c := dial(t)
	var busy sync.WaitGroup
	for range 8 {
		busy.Go(func() {
			r := program("for (;;);")
			r.Execute.Limits = protocol.Limits{CPUMs: 20000, WallMs: 10000}
			_, _ = c.Execute(context.Background(), r)
		})
	}
	time.Sleep(10 * time.Second) // five times what it would take
	if now := mainPID(t); now != pid {
		t.Errorf("process %d became %d", pid, now)
	}
	_ = c.Close()
	busy.Wait()
}

// S15: a service that is stuck is started again.
func TestS15WatchdogRestarts(t *testing.T) {
	units(t, service, "[Service]\nWatchdogSec=2\nTimeoutAbortSec=2\n")
	works(t)
	pid := mainPID(t)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another process serves", func() bool { now := mainPID(t); return now != 0 && now != pid })
	works(t)
	if out := sh(t, "journalctl -q -b -o cat UNIT="+service); !strings.Contains(out, "watchdog") && !strings.Contains(out, "Watchdog") {
		t.Errorf("the journal says nothing of it:\n%s", out)
	}
}

// S11: a reload is quick, also with a bad file, which changes nothing and says why.
func TestS11Reload(t *testing.T) {
	units(t)
	works(t)
	pid := mainPID(t)
	reload := func(text string) string {
		t.Helper()
		settingsFile(t, text)
		begin := time.Now()
		sh(t, "systemctl reload "+service)
		if took := time.Since(begin); took > time.Second {
			t.Errorf("it took %v", took)
		}
		return show(t, service, "StatusText")
	}
	reload("EXECUTORD_LOG_LEVEL=debug")
	eventually(t, "debug lines are logged", func() bool {
		works(t)
		out, _ := try(t, "/bin/sh", "-c", "journalctl -q -b -o cat -p debug _PID="+strconv.Itoa(pid)+" | grep -c 'execution'")
		return out != "0"
	})
	reload("EXECUTORD_LOG_LEVEL=loud")
	eventually(t, "the status says what is wrong", func() bool { return strings.Contains(show(t, service, "StatusText"), "EXECUTORD_LOG_LEVEL") })
	works(t)
	reload("")
	eventually(t, "the status is good again", func() bool { return show(t, service, "StatusText") == "Serving" })
	if now := mainPID(t); now != pid || show(t, service, "ActiveState") != "active" {
		t.Errorf("process %d became %d", pid, now)
	}
}

// A stop finishes what runs.
func TestStopDrains(t *testing.T) {
	units(t)
	c := dial(t)
	running, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		r := program("await new Promise(r => setTimeout(r, 2000)); 'finished'")
		r.OnState = func(s protocol.State) {
			if s.State == protocol.StateRunning {
				close(running)
			}
		}
		o, err := c.Execute(context.Background(), r)
		if err == nil && string(o.Value) != `"finished"` {
			err = fmt.Errorf("got %s: %w", o.Value, o.Err())
		}
		ended <- err
	}()
	<-running
	sh(t, "systemctl stop "+"executord.socket executord-admin.socket"+" "+service)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if result := show(t, service, "Result"); result != "success" {
		t.Errorf("the result is %s", result)
	}
	eventually(t, "no worker is left", func() bool { return len(workers(t)) == 0 })
}

// A restart under load refuses no connection and loses nothing that was accepted.
func TestRestartUnderLoad(t *testing.T) {
	units(t)
	works(t)
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	var mu sync.Mutex
	served, again := 0, 0
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				c, err := client.Dial(context.Background(), "unix:"+socketPath)
				if err != nil && !errors.Is(err, protocol.Draining) {
					t.Errorf("a connection was refused: %v", err)
					return
				}
				if err != nil { // the old process, in its last moment
					mu.Lock()
					again++
					mu.Unlock()
					continue
				}
				o, err := c.Execute(context.Background(), program("await new Promise(r => setTimeout(r, 20)); 1"))
				_ = c.Close()
				mu.Lock()
				switch {
				case errors.Is(err, protocol.Draining): // was not accepted
					again++
				case err != nil:
					t.Errorf("an execution was lost: %v", err)
				case o.Err() != nil || string(o.Value) != "1":
					t.Errorf("an execution ended with %v", o.Err())
				default:
					served++
				}
				mu.Unlock()
			}
		})
	}
	for range 3 {
		time.Sleep(500 * time.Millisecond)
		sh(t, "systemctl restart "+service)
	}
	time.Sleep(500 * time.Millisecond)
	cancel()
	callers.Wait()
	t.Logf("%d executions over three restarts, %d turned away to be sent again", served, again)
	if served < 20 {
		t.Errorf("only %d were served", served)
	}
}

// The end of the service by a signal takes its workers along, and the socket takes the next caller.
func TestCrashLeavesNoWorker(t *testing.T) {
	units(t)
	c := dial(t)
	running := make(chan struct{})
	go func() {
		r := program("for (;;);")
		r.Execute.Limits = protocol.Limits{CPUMs: 60000, WallMs: 60000}
		r.OnState = func(s protocol.State) {
			if s.State == protocol.StateRunning {
				close(running)
			}
		}
		_, _ = c.Execute(context.Background(), r)
	}()
	<-running
	old := workers(t)
	_ = syscall.Kill(mainPID(t), syscall.SIGKILL)
	begin := time.Now()
	eventually(t, "the old workers are gone", func() bool {
		now := workers(t)
		return !slices.ContainsFunc(old, func(w string) bool { return slices.Contains(now, w) })
	})
	t.Logf("%d workers were gone after %v", len(old), time.Since(begin))
	works(t)
}

// Workers that are stuck when the service crashes are killed by the next one.
func TestStuckOrphansAreKilled(t *testing.T) {
	units(t)
	works(t)
	old := workers(t)
	for _, w := range old {
		_ = syscall.Kill(pidOf(t, w), syscall.SIGSTOP)
	}
	_ = syscall.Kill(mainPID(t), syscall.SIGKILL)
	eventually(t, "the old workers are gone", func() bool {
		now := workers(t)
		return !slices.ContainsFunc(old, func(w string) bool { return slices.Contains(now, w) })
	})
	works(t)
}

// A worker that does not react is killed by its unit's name, which polkit lets the service do and nothing else.
func TestStuckWorkersAreKilled(t *testing.T) {
	units(t)
	killStuckWorkers(t)
	works(t)
	for _, line := range []string{
		"systemctl kill systemd-journald.service", "systemctl stop executord.socket", "systemctl stop " + workers(t)[0],
		"systemctl start executor-worker.socket", "systemctl kill executord.service",
	} {
		if out, status := asUser(t, "executord", "/bin/sh", "-c", line); status == 0 {
			t.Errorf("the service's user may: %s\n%s", line, out)
		}
	}
}

// The bus of the system may be restarted under the service: it finds the new one.
func TestBusMayBeRestarted(t *testing.T) {
	units(t)
	works(t)
	run(t, "systemctl", "restart", "dbus.service")
	eventually(t, "the service has found the new bus", func() bool { return strings.Contains(journal(t, service), "reached the system's bus again") })
	killStuckWorkers(t)
	works(t)
}

// killStuckWorkers has all workers stop, one of them with a program.
func killStuckWorkers(t *testing.T) {
	t.Helper()
	c := dial(t)
	running, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		r := program("await new Promise(r => setTimeout(r, 1e6))")
		r.Execute.Limits = protocol.Limits{TotalMs: 2000}
		r.OnState = func(s protocol.State) {
			if s.State == protocol.StateRunning {
				close(running)
			}
		}
		o, err := c.Execute(context.Background(), r)
		if err == nil {
			err = o.Err()
		}
		ended <- err
	}()
	<-running
	stopped := workers(t)
	for _, w := range stopped {
		_ = syscall.Kill(pidOf(t, w), syscall.SIGSTOP)
	}
	if err := <-ended; !errors.Is(err, protocol.TotalTimeout) {
		t.Errorf("it ended with %v", err)
	}
	eventually(t, "the stopped workers are gone", func() bool {
		now := workers(t)
		return !slices.ContainsFunc(stopped, func(w string) bool { return slices.Contains(now, w) })
	})
}

func pidOf(t *testing.T, unit string) int {
	t.Helper()
	pid, _ := strconv.Atoi(show(t, unit, "MainPID"))
	return pid
}

// U5: the group may use the service, nobody else.
func TestU5OnlyTheGroupGetsIn(t *testing.T) {
	units(t)
	serves(t)
	for _, path := range []string{socketPath, adminPath} {
		if out, status := runProgram(t, stranger, "6 * 7", "--address", "unix:"+path); status == 0 {
			t.Errorf("a stranger gets %q", out)
		}
	}
	for name, may := range map[string]bool{operator: true, caller: false, stranger: false} {
		if out, status := asUser(t, name, "executorctl", "status"); status == 0 != may {
			t.Errorf("%s operates: exit status %d\n%s", name, status, out)
		}
	}
}

// Lines of the journal carry what they are about as fields.
func TestJournalFields(t *testing.T) {
	units(t, service, "[Service]\nEnvironment=EXECUTORD_LOG_LEVEL=debug\n")
	works(t)
	eventually(t, "a line names its execution", func() bool {
		out, _ := try(t, "/bin/sh", "-c", "journalctl -q -b -o json -u "+service)
		for line := range strings.Lines(out) {
			var fields map[string]any
			if json.Unmarshal([]byte(line), &fields) == nil && fields["EXECUTION"] != nil && fields["PRIORITY"] != nil {
				return true
			}
		}
		return false
	})
}

// Secrets come as credentials, which no other process sees.
func TestCredentials(t *testing.T) {
	if err := os.WriteFile("/root/tokens", []byte("box 0123456789abcdef0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	units(t, service, "[Service]\nLoadCredential=tokens:/root/tokens\nEnvironment=EXECUTORD_TOKEN_FILE=%d/tokens\n")
	sh(t, "systemctl start executord-tcp.socket")
	t.Cleanup(func() { sh(t, "systemctl stop executord-tcp.socket") })
	const url = "http://127.0.0.1:7410/v1/execute"
	post := func(token string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx(t), http.MethodPost, url, strings.NewReader(`{"code": "1"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	if got := post("0123456789abcdef0123456789abcdef"); got != 200 {
		t.Errorf("with the token: %d", got)
	}
	if got := post("wrong"); got != 401 && got != 403 {
		t.Errorf("with another: %d", got)
	}
}

// K3, K7: where a program's own limits and the pool's watch are out of reach, the kernel ends the worker at its unit's
// MemoryMax: one program, and nobody else. On cgroup v2 systemd knows that it was for memory; on v1 it only sees a signal.
func TestK3KernelEndsAMemoryBomb(t *testing.T) {
	units(t, "executor-worker@.service", "[Service]\nMemoryMax=160M")
	works(t)
	pid := mainPID(t)
	c := dial(t)
	neighbour, ended := make(chan error, 1), make(chan struct{})
	go func() {
		for {
			o, err := c.Execute(context.Background(), program("1 + 1"))
			if err == nil {
				err = o.Err()
			}
			if err != nil {
				neighbour <- err
				return
			}
			select {
			case <-ended:
				neighbour <- nil
				return
			default:
			}
		}
	}()
	r := program("console.log('before'); const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))")
	r.Execute.Limits = protocol.Limits{HeapMiB: 512, BufferMiB: 512, SlackMiB: 1024, CPUMs: 60_000, WallMs: 60_000}
	o, err := c.Execute(context.Background(), r)
	close(ended)
	if err != nil {
		t.Fatal(err)
	}
	want := protocol.MemoryLimit
	if sh(t, "stat -fc %T /sys/fs/cgroup") != "cgroup2fs" {
		want = protocol.WorkerCrashed
	}
	if !errors.Is(o.Err(), want) || len(o.Logs) != 1 {
		t.Errorf("it ended with %v and %d lines, want %s and one", o.Err(), len(o.Logs), want)
	}
	t.Log(o.Err())
	if err := <-neighbour; err != nil {
		t.Errorf("its neighbour: %v", err)
	}
	if now := mainPID(t); now != pid {
		t.Error("the service was started again")
	}
	works(t)
	if out := sh(t, "systemctl --failed --plain --no-legend"); out != "" {
		t.Error(out)
	}
}

// K11: the layers that hold a worker are listed for the operator.
func TestK11LayersAreListed(t *testing.T) {
	units(t)
	works(t)
	var list struct {
		Workers []struct {
			State     string
			Isolation []string
		}
	}
	text := operate(t, "/v1/workers")
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Workers) == 0 {
		t.Fatalf("%v in %s", err, text)
	}
	for _, w := range list.Workers {
		if w.State == "starting" {
			continue // it has not said yet
		}
		for _, layer := range []string{
			"process", "user-namespace", "network-namespace", "ipc-namespace", "uts-namespace", "unprivileged-user", "rlimits",
			"no-new-privileges", "session-keyring", "empty-root", "landlock", "no-capabilities", "no-dump", "seccomp",
		} {
			if layer == "landlock" && !hasLandlock() {
				continue
			}
			if !slices.Contains(w.Isolation, layer) {
				t.Errorf("a worker has not %s: %q", layer, w.Isolation)
			}
		}
	}
	t.Logf("%q", list.Workers[0].Isolation)
}

// hasLandlock tells whether processes of the box may use it: nspawn of systemd 252 refuses that, whatever the kernel has.
func hasLandlock() bool {
	_, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return errno == 0
}

// The cage of a worker, seen from inside: no network, no other files, no privileges, its own user.
func TestWorkersAreCaged(t *testing.T) {
	units(t)
	works(t)
	unit := workers(t)[0]
	pid := pidOf(t, unit)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"} {
		if !bytes.Contains(status, []byte(want)) {
			t.Errorf("no %q", want)
		}
	}
	if bytes.Contains(status, []byte("Uid:\t0")) {
		t.Error("it is root")
	}
	for _, ns := range []string{"net", "mnt", "ipc", "user", "uts"} {
		own, _ := os.Readlink("/proc/1/ns/" + ns)
		its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, ns))
		if err != nil || own == its {
			t.Errorf("namespace %s is the machine's: %s, %v", ns, its, err)
		}
	}
	const visible = `^/(dev|proc|sys)(/|$)|^/usr/libexec/executord/executor-worker$|/(ld-linux-x86-64|libc|libm)\.so\.\d$`
	out := sh(t, fmt.Sprintf("cd /proc/%d/root && find . -xdev -type f -o -type l -o -type s | cut -c2-", pid))
	for path := range strings.Lines(out) {
		if path = strings.TrimSpace(path); !regexp.MustCompile(visible).MatchString(path) {
			t.Errorf("it sees %s", path)
		}
	}
	if uid := show(t, unit, "DynamicUser"); uid != "yes" {
		t.Error("it has no user of its own")
	}
	if a, b := sh(t, fmt.Sprintf("stat -c %%u /proc/%d", pid)), sh(t, fmt.Sprintf("stat -c %%u /proc/%d", mainPID(t))); a == b {
		t.Error("it runs as the service's user")
	}
}

// K5: the service executes nothing that it wrote; workers, which have to, are not its heirs.
func TestK5WriteXorExecute(t *testing.T) {
	units(t)
	works(t)
	if got := show(t, service, "MemoryDenyWriteExecute"); got != "yes" {
		t.Errorf("the service: %s", got)
	}
	if got := show(t, workers(t)[0], "MemoryDenyWriteExecute"); got != "no" {
		t.Errorf("a worker: %s", got)
	}
}

// Workers come and go without a trace: no failed unit, no quota of connections used up.
func TestManyWorkerStarts(t *testing.T) {
	starts := 50
	if n, err := strconv.Atoi(os.Getenv("BOX_STARTS")); err == nil {
		starts = n
	}
	units(t, service, "[Service]\nEnvironment=EXECUTORD_WORKER_MAX_EXECUTIONS=1\n")
	works(t)
	c := dial(t)
	begin := time.Now()
	var callers sync.WaitGroup
	for range 3 {
		callers.Go(func() {
			for range starts/3 + 1 {
				o, err := c.Execute(context.Background(), program("1"))
				if err == nil {
					err = o.Err()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	var status admin.Status
	if err := json.Unmarshal([]byte(operate(t, "/v1/status")), &status); err != nil {
		t.Fatal(err)
	}
	started := status.Totals.WorkersStarted
	t.Logf("%d processes, each for one execution at most, in %v", started, time.Since(begin))
	if int(started) < starts {
		t.Errorf("%d processes were started for %d executions", started, starts)
	}
	eventually(t, "only the pool's workers are left", func() bool { return len(workers(t)) <= 8 })
	if out := sh(t, "systemctl --failed --plain --no-legend"); out != "" {
		t.Error(out)
	}
	if got := show(t, "executor-worker.socket", "NConnections"); got > "8" && len(got) > 1 {
		t.Errorf("%s connections are counted", got)
	}
}
