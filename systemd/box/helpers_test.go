package box

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What the driver lays beside the test binary: the package, and the same as its next version.
const (
	version, nextVersion = "1.0.1", "1.0.2"
	deb, nextDeb         = "executord-1.deb", "executord-2.deb"
)

// Users of the machine. Caller is a member of group executord, operator of executord-admin, stranger of neither.
const (
	caller   = "box-caller"
	operator = "box-operator"
	stranger = "box-stranger"
)

const socketPath = "/run/executord/executord.sock"

// TestMain does nothing outside of a box, which sets BOX_OUT.
func TestMain(m *testing.M) {
	if os.Getenv("BOX_OUT") == "" {
		fmt.Println("skipped: it takes a machine of its own; make check-systemd makes one")
		os.Exit(0)
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "cannot prepare the box:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// prepare makes the users, and gives workers time where there is little of it.
func prepare() error {
	if os.Getenv("BOX") == "qemu" {
		const dir = "/run/systemd/system/service.d" // of every service: those of ours go with the package
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		text := fmt.Sprintf("[Service]\nEnvironment=EXECUTORD_WORKER_START_TIMEOUT=%s EXECUTORD_HEARTBEAT_TIMEOUT=%s\nTimeoutStartSec=%d\n", 10*time.Second*pace(), 5*time.Second*pace(), 90*pace())
		if err := os.WriteFile(filepath.Join(dir, "box-pace.conf"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := os.Setenv("LC_ALL", "C.UTF-8"); err != nil {
		return err
	}
	config := "g executord - -\ng executord-admin - -\n"
	for name, group := range map[string]string{caller: "executord", operator: "executord-admin", stranger: ""} {
		config += fmt.Sprintf("u %s - - / /bin/sh\n", name)
		if group != "" {
			config += fmt.Sprintf("m %s %s\n", name, group)
		}
	}
	path := filepath.Join(os.TempDir(), "box.conf")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		return err
	}
	if out, err := exec.Command("systemd-sysusers", path).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// pace is how much longer everything takes than on a real machine, to be multiplied with every deadline.
func pace() time.Duration {
	if os.Getenv("BOX") == "qemu" {
		return 8
	}
	return 2
}

// command is a program with a deadline.
func command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second*pace()) // cleanups run programs too
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "SYSTEMD_COLORS=0", "SYSTEMD_PAGER=", "DEBIAN_FRONTEND=noninteractive")
	return cmd
}

// finish runs a command and returns what it wrote to both outputs, without the last line's end, and its exit status.
func finish(t *testing.T, cmd *exec.Cmd) (string, int) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	text := strings.TrimRight(string(out), "\n")
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v\n%s", cmd, err, text)
	}
	return text, cmd.ProcessState.ExitCode()
}

// try runs a program as root and returns its output and exit status.
func try(t *testing.T, name string, args ...string) (string, int) {
	t.Helper()
	return finish(t, command(t, name, args...))
}

// run is try for what has to succeed.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, status := try(t, name, args...)
	if status != 0 {
		t.Fatalf("%s %s: exit status %d\n%s", name, strings.Join(args, " "), status, out)
	}
	return out
}

// asUser runs a program as a user of the machine, with all his groups.
func asUser(t *testing.T, name, program string, args ...string) (string, int) {
	t.Helper()
	cmd := command(t, program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential(t, name)}
	return finish(t, cmd)
}

func credential(t *testing.T, name string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := u.GroupIds()
	if err != nil {
		t.Fatal(err)
	}
	number := func(text string) uint32 {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(n)
	}
	c := &syscall.Credential{Uid: number(u.Uid), Gid: number(u.Gid)}
	for _, g := range groups {
		c.Groups = append(c.Groups, number(g))
	}
	return c
}

// runProgram runs a program in JavaScript as a user, and returns what executorctl says.
func runProgram(t *testing.T, user, code string, args ...string) (string, int) {
	t.Helper()
	cmd := command(t, "executorctl", append([]string{"run", "-"}, args...)...)
	cmd.Stdin = strings.NewReader(code)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential(t, user)}
	return finish(t, cmd)
}

// serves fails unless the service runs a program for a member of its group. It starts the service, by its socket.
func serves(t *testing.T) {
	t.Helper()
	if os.Getenv("BOX") == "qemu" { // where a start takes longer than a client waits
		wake(t)
	}
	if out, status := runProgram(t, caller, "6 * 7"); status != 0 || out != "42" {
		t.Fatalf("a program of a member of the group: exit status %d\n%s\n%s", status, out, journal(t, "executord.service"))
	}
}

// wake connects, which starts the service, and waits until it is ready.
func wake(t *testing.T) {
	t.Helper()
	c, err := net.Dial("unix", socketPath)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	eventually(t, "the service is ready", func() bool { return state(t, "executord.service") == "active" })
}

// show is a property of a unit.
func show(t *testing.T, unit, property string) string {
	t.Helper()
	return run(t, "systemctl", "show", "--value", "-p", property, unit)
}

// state is the ActiveState of a unit.
func state(t *testing.T, unit string) string {
	t.Helper()
	return show(t, unit, "ActiveState")
}

// journal is what the journal has of units since the machine was booted.
func journal(t *testing.T, units ...string) string {
	t.Helper()
	run(t, "journalctl", "--sync")
	args := []string{"-b", "-q", "--no-pager", "-o", "short-monotonic"}
	for _, unit := range units {
		args = append(args, "-u", unit)
	}
	return run(t, "journalctl", args...)
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second * pace())
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s\n%s", what, journal(t, "executord.service"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// packageState is what dpkg has of the package: "not-installed", "installed", "config-files".
func packageState(t *testing.T) string {
	t.Helper()
	out, status := try(t, "dpkg-query", "-W", "-f", "${db:Status-Status}", "executord")
	if status != 0 {
		return "not-installed"
	}
	return out
}

// purge takes the package from the machine, with all that tests left.
func purge(t *testing.T) {
	t.Helper()
	if packageState(t) != "not-installed" {
		run(t, "dpkg", "--purge", "executord")
	}
	for _, pattern := range []string{"/etc/systemd/system/execut*", "/run/systemd/system/execut*", "/etc/executord", "/var/lib/executord", "/run/executord"} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(t, "systemctl", "daemon-reload")
	_, _ = try(t, "systemctl", "reset-failed", "execut*")
}

// fresh is a machine on which the package was installed just now, for the first time. It is purged after the test.
func fresh(t *testing.T) {
	t.Helper()
	purge(t)
	install(t, deb)
	t.Cleanup(func() { purge(t) })
}

// installed is a machine with the package and its defaults, for tests that change nothing of the package: it stays for the
// next. The service is stopped, its sockets listen.
func installed(t *testing.T) {
	t.Helper()
	present(t)
	run(t, "systemctl", "stop", "executord.service")
	_, _ = try(t, "systemctl", "reset-failed", "execut*")
	run(t, "systemctl", "start", "executord.socket", "executord-admin.socket")
}

// present installs the package where it is not.
func present(t *testing.T) {
	t.Helper()
	if packageState(t) != "installed" {
		purge(t)
		install(t, deb)
	}
}

// install installs a deb, over what is there.
func install(t *testing.T, file string) string {
	t.Helper()
	return run(t, "dpkg", "--force-confdef", "--install", file)
}

// dropIn adds lines to a unit until the test ends: dropIn(t, "executord.service", "[Service]", "WatchdogSec=1").
func dropIn(t *testing.T, unit string, lines ...string) {
	t.Helper()
	dir := filepath.Join("/run/systemd/system", unit+".d")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "box.conf"), strings.Join(lines, "\n")+"\n", 0o644)
	run(t, "systemctl", "daemon-reload")
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
		run(t, "systemctl", "daemon-reload")
	})
}

// settingsFile makes the lines all that the settings file says, until the test ends.
func settingsFile(t *testing.T, lines ...string) {
	t.Helper()
	const path = "/etc/executord/executord.env"
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, strings.Join(lines, "\n")+"\n", 0o644)
	t.Cleanup(func() {
		if err := os.WriteFile(path, before, 0o644); err != nil {
			t.Error(err)
		}
	})
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
