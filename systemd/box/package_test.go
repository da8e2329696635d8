package box

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	socket      = "executord.socket"
	adminSocket = "executord-admin.socket"
	settings    = "/etc/executord/executord.env"
	news        = "# This is the next version's.\n" // the last line of the next version's settings file
)

// TestFirstProgram: after the installation the sockets listen, the service does not run yet, and the first program of a
// member of the group starts it. Nobody else may.
func TestFirstProgram(t *testing.T) {
	fresh(t)
	for _, unit := range []string{socket, adminSocket} {
		if s := state(t, unit); s != "active" {
			t.Errorf("%s is %s", unit, s)
		}
	}
	for unit, want := range map[string]string{socket: "enabled", adminSocket: "enabled", "executord-tcp.socket": "disabled"} {
		if got := enabled(t, unit); got != want {
			t.Errorf("%s is %s, must be %s", unit, got, want)
		}
	}
	if s := state(t, service); s != "inactive" {
		t.Errorf("the service is %s", s)
	}
	serves(t)
	if s := state(t, service); s != "active" {
		t.Errorf("the service is %s", s)
	}
	for _, user := range []string{stranger, operator} {
		out, status := runProgram(t, user, "1")
		if status == 0 || !strings.Contains(out, "you may not use the socket "+socketPath) {
			t.Errorf("a program of %s: exit status %d\n%s", user, status, out)
		}
	}
	if out, status := asUser(t, operator, "executorctl", "status"); status != 0 {
		t.Errorf("the operator: exit status %d\n%s", status, out)
	}
	for _, user := range []string{stranger, caller} {
		if out, status := asUser(t, user, "executorctl", "status"); status == 0 {
			t.Errorf("%s operates the service:\n%s", user, out)
		}
	}
	noneFailed(t)
}

// TestCallersWaitForASlowStart: who comes first waits until the service is ready, however long that takes within reason.
func TestCallersWaitForASlowStart(t *testing.T) {
	fresh(t)
	dropIn(t, service, "[Service]", "ExecStartPre=/bin/sleep 12")
	if out, status := runProgram(t, caller, "6 * 7"); (status != 0 || out != "42") && os.Getenv("BOX") != "qemu" {
		t.Errorf("exit status %d\n%s", status, out)
	}
	serves(t)
}

// enabled is what systemctl is-enabled says of a unit.
func enabled(t *testing.T, unit string) string {
	t.Helper()
	out, _ := try(t, "systemctl", "is-enabled", unit)
	return out
}

func noneFailed(t *testing.T) {
	t.Helper()
	if out := run(t, "systemctl", "--failed", "--no-legend", "--plain"); out != "" {
		t.Errorf("failed units:\n%s", out)
	}
}

// TestB1UpgradeOfARunningService: a service that ran runs afterwards, as a new process, and whoever connects meanwhile waits.
func TestB1UpgradeOfARunningService(t *testing.T) {
	for _, c := range []struct{ name, file string }{{"upgrade", nextDeb}, {"downgrade", deb}, {"same version", deb}} {
		t.Run(c.name, func(t *testing.T) {
			fresh(t)
			if c.name == "downgrade" {
				install(t, nextDeb)
			}
			serves(t)
			before := mainPID(t)
			done := make(chan struct{})
			go func() {
				defer close(done)
				install(t, c.file)
			}()
			runs := 0
			for finished := false; !finished; runs++ {
				select {
				case <-done:
					finished = true
				default:
				}
				serves(t)
			}
			if s := state(t, service); s != "active" {
				t.Errorf("the service is %s", s)
			}
			if after := mainPID(t); after == before {
				t.Errorf("process %d still runs", after)
			}
			t.Logf("%d programs ran meanwhile", runs)
			for _, unit := range []string{socket, adminSocket} {
				if state(t, unit) != "active" || enabled(t, unit) != "enabled" {
					t.Errorf("%s is %s, %s", unit, state(t, unit), enabled(t, unit))
				}
			}
			noneFailed(t)
		})
	}
}

// TestB9UpgradeKeepsStates: what was stopped, disabled or masked before an upgrade is so afterwards.
func TestB9UpgradeKeepsStates(t *testing.T) {
	for _, c := range []struct {
		name    string
		do      []string
		service string
		socket  string
		enabled string
	}{
		{"not started yet", nil, "inactive", "active", "enabled"},
		{"service stopped", []string{"stop", service}, "inactive", "active", "enabled"},
		{"all stopped", []string{"stop", socket, adminSocket, service}, "inactive", "inactive", "enabled"},
		{"disabled", []string{"disable", "--now", socket, adminSocket}, "inactive", "inactive", "disabled"},
		{"socket masked", []string{"mask", "--now", socket, adminSocket}, "inactive", "inactive", "masked"},
		{"service masked", []string{"mask", "--now", service}, "inactive", "active", "enabled"},
		{"all masked", []string{"mask", "--now", socket, adminSocket, service}, "inactive", "inactive", "masked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fresh(t)
			if c.do != nil {
				serves(t)
				run(t, "systemctl", "stop", service)
				run(t, "systemctl", c.do...)
			}
			for _, file := range []string{nextDeb, deb} {
				install(t, file)
				if got := state(t, service); got != c.service {
					t.Errorf("after %s the service is %s, must be %s", file, got, c.service)
				}
				for _, unit := range []string{socket, adminSocket} {
					if got := state(t, unit); got != c.socket {
						t.Errorf("after %s %s is %s, must be %s", file, unit, got, c.socket)
					}
					if got := enabled(t, unit); got != c.enabled {
						t.Errorf("after %s %s is %s, must be %s", file, unit, got, c.enabled)
					}
				}
				if slices.Contains(c.do, "mask") && slices.Contains(c.do, service) && enabled(t, service) != "masked" {
					t.Errorf("after %s the service is %s", file, enabled(t, service))
				}
			}
			noneFailed(t)
		})
	}
}

// TestB5EditedSettingsStay: an upgrade keeps a settings file that was edited, and the service that reads it; where the
// package brings another one, that is laid beside it.
func TestB5EditedSettingsStay(t *testing.T) {
	fresh(t)
	text := readFile(t, settings) + "EXECUTORD_LOG_LEVEL=debug\n"
	writeFile(t, settings, text, 0o644)
	run(t, "chmod", "640", settings)
	run(t, "chgrp", "executord", settings)
	serves(t)
	install(t, nextDeb) // it has another settings file
	if readFile(t, settings) != text {
		t.Error("the upgrade changed the settings file")
	}
	if got := run(t, "stat", "-c", "%a %G", settings); got != "640 executord" {
		t.Errorf("the settings file is %s", got)
	}
	if !strings.HasSuffix(readFile(t, settings+".dpkg-dist"), news) {
		t.Error("the new settings file is not beside the old one")
	}
	serves(t)

	// One that nobody edited is replaced.
	purge(t)
	install(t, deb)
	install(t, nextDeb)
	if !strings.HasSuffix(readFile(t, settings), news) {
		t.Error("a settings file that nobody edited was not replaced")
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// repack makes another deb of a deb.
func repack(t *testing.T, file, version string, change func(root string)) string {
	t.Helper()
	root, made := t.TempDir(), filepath.Join(t.TempDir(), "changed.deb")
	run(t, "dpkg-deb", "--raw-extract", file, root)
	control := filepath.Join(root, "DEBIAN/control")
	var lines []string
	for line := range strings.Lines(readFile(t, control)) {
		if strings.HasPrefix(line, "Version:") {
			line = "Version: " + version + "\n"
		}
		lines = append(lines, line)
	}
	writeFile(t, control, strings.Join(lines, ""), 0o644)
	change(root)
	run(t, "dpkg-deb", "-Znone", "--root-owner-group", "--build", root, made)
	return made
}

// TestRemove: nothing of the package runs or listens any more, callers are refused at once; settings and state stay.
func TestRemove(t *testing.T) {
	fresh(t)
	serves(t)
	writeFile(t, settings, readFile(t, settings)+"EXECUTORD_LOG_LEVEL=debug\n", 0o644)
	run(t, "dpkg", "--remove", "executord")
	for _, unit := range []string{service, socket, adminSocket, "executor-worker.socket", "executord-workers.slice"} {
		if s := state(t, unit); s != "inactive" {
			t.Errorf("%s is %s", unit, s)
		}
	}
	eventually(t, "no worker is left", func() bool {
		_, status := try(t, "pgrep", "-f", "executor")
		return status != 0
	})
	for _, path := range []string{"/usr/bin/executord", "/usr/bin/executorctl", "/usr/libexec/executord", socketPath, adminPath, "/run/executord/worker.sock"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	if !strings.Contains(readFile(t, settings), "LEVEL=debug") {
		t.Error("the settings are gone")
	}
	noneFailed(t)
	t.Run("and install", func(t *testing.T) {
		install(t, deb)
		for _, unit := range []string{socket, adminSocket} {
			if state(t, unit) != "active" || enabled(t, unit) != "enabled" {
				t.Errorf("%s is %s, %s", unit, state(t, unit), enabled(t, unit))
			}
		}
		if !strings.Contains(readFile(t, settings), "LEVEL=debug") {
			t.Error("the settings are gone")
		}
		serves(t)
	})
	t.Run("and install what was disabled", func(t *testing.T) {
		run(t, "systemctl", "disable", "--now", adminSocket)
		run(t, "dpkg", "--remove", "executord")
		install(t, nextDeb)
		if state(t, adminSocket) != "inactive" || enabled(t, adminSocket) != "disabled" {
			t.Errorf("%s is %s, %s", adminSocket, state(t, adminSocket), enabled(t, adminSocket))
		}
		if s := state(t, socket); s != "active" {
			t.Errorf("%s is %s", socket, s)
		}
	})
}

// TestPurge: nothing of the package is left, but what others put into its folders, and its users.
func TestPurge(t *testing.T) {
	fresh(t)
	serves(t)
	foreign := []string{"/etc/executord/tokens", "/var/lib/executord/mine", "/run/executord/mine"}
	for _, path := range foreign {
		writeFile(t, path, "mine", 0o600)
	}
	run(t, "dpkg", "--purge", "executord")
	if s := packageState(t); s != "not-installed" {
		t.Errorf("the package is %s", s)
	}
	for _, path := range foreign {
		if readFile(t, path) != "mine" {
			t.Errorf("%s was changed", path)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	for line := range strings.Lines(run(t, "find", "/etc", "/usr", "/var/lib", "/run", "-xdev", "-iname", "*execut*or*", "-not", "-path", "/run/log/*")) {
		switch path := strings.TrimSpace(line); path {
		case "/etc/executord", "/var/lib/executord", "/run/executord": // what was foreign kept them
		default:
			left = append(left, path)
		}
	}
	if len(left) > 0 {
		t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
	}
	noneFailed(t)
	install(t, deb)
	serves(t)
}

// TestB7Modes: what lies on the machine has the modes and owners of a list, although the package was built under umask 077.
func TestB7Modes(t *testing.T) {
	fresh(t)
	serves(t)
	want := map[string]string{
		"/etc/executord":                         "755 root root",
		settings:                                 "644 root root",
		"/usr/bin/executord":                     "755 root root",
		"/usr/bin/executorctl":                   "755 root root",
		"/usr/libexec/executord":                 "755 root root",
		"/run/executord":                         "755 root root",
		"/run/executord/worker-root":             "755 root root",
		socketPath:                               "660 executord executord",
		adminPath:                                "660 executord executord-admin",
		"/run/executord/worker.sock":             "600 executord executord",
		"/usr/share/polkit-1/rules.d":            "700 polkitd root", // polkitd's own
		"/var/lib/executord":                     "750 executord executord",
		"/usr/libexec/executord/executor-worker": "755 root root",
	}
	for path := range strings.Lines(run(t, "dpkg", "-L", "executord")) {
		path = strings.TrimSpace(path)
		info, err := os.Lstat(path)
		if os.IsNotExist(err) && (strings.HasPrefix(path, "/usr/share/man/") || strings.HasPrefix(path, "/usr/share/doc/")) {
			continue // the box has no documentation; the package's own list is below
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if _, listed := want[path]; !listed {
			want[path] = map[bool]string{true: "755 root root", false: "644 root root"}[info.IsDir()]
		}
	}
	for path, mode := range want {
		if got, _ := try(t, "stat", "-c", "%a %U %G", path); got != mode {
			t.Errorf("%s is %q, must be %q", path, got, mode)
		}
	}
	for _, list := range []string{run(t, "dpkg-deb", "-c", deb), run(t, "rpm", "-qlvp", "executord-1.rpm")} {
		for line := range strings.Lines(list) {
			f := strings.Fields(line)
			mode, path := f[0], f[len(f)-1]
			program := strings.HasPrefix(path, "/usr/bin/") || strings.HasPrefix(strings.TrimPrefix(path, "."), "/usr/bin/") || strings.HasSuffix(path, "/executor-worker")
			if want := map[bool]string{true: "-rwxr-xr-x", false: "-rw-r--r--"}[program]; mode != want && mode != "drwxr-xr-x" {
				t.Errorf("must be %s: %s", want, line)
			}
			if !strings.Contains(line, "root/root") && (f[2] != "root" || f[3] != "root") {
				t.Errorf("must be root's: %s", line)
			}
		}
	}
	// Under a mask that lets nobody else in, the scripts make the same.
	purge(t)
	run(t, "/bin/sh", "-c", "umask 077; exec dpkg --install "+deb)
	for _, path := range []string{"/etc/executord", settings, "/run/executord", "/run/executord/worker-root"} {
		if got, _ := try(t, "stat", "-c", "%a %U %G", path); got != want[path] {
			t.Errorf("under umask 077 %s is %q, must be %q", path, got, want[path])
		}
	}
	serves(t)
}

// TestB11OtherMachine: a package for another machine is not installed, and leaves the one that is there as it is.
func TestB11OtherMachine(t *testing.T) {
	fresh(t)
	serves(t)
	other := repack(t, nextDeb, nextVersion, func(root string) {
		control := filepath.Join(root, "DEBIAN/control")
		writeFile(t, control, strings.Replace(readFile(t, control), "Architecture: amd64", "Architecture: arm64", 1), 0o644)
	})
	before := mainPID(t)
	out, status := try(t, "dpkg", "--install", other)
	if status == 0 || !strings.Contains(out, "does not match system") {
		t.Errorf("exit status %d\n%s", status, out)
	}
	if now := mainPID(t); now != before {
		t.Errorf("process %d became %d", before, now)
	}
	serves(t)
	if out := run(t, "/usr/libexec/executord/executor-worker", "-version"); !strings.HasPrefix(out, "V8 ") {
		t.Errorf("the engine says %q", out)
	}
}

// TestFailedUpgradeKeepsTheService: an upgrade that dpkg has to take back leaves the service as it was.
func TestFailedUpgradeKeepsTheService(t *testing.T) {
	fresh(t)
	serves(t)
	before := mainPID(t)
	broken := repack(t, nextDeb, "1.0.4", func(root string) {
		writeFile(t, filepath.Join(root, "DEBIAN/preinst"), "#!/bin/sh\nexit 1\n", 0o755)
	})
	if out, status := try(t, "dpkg", "--install", broken); status == 0 {
		t.Fatalf("it was installed:\n%s", out)
	}
	if s := packageState(t); s != "installed" {
		t.Errorf("the package is %s", s)
	}
	if now := mainPID(t); now != before {
		t.Errorf("process %d became %d", before, now)
	}
	serves(t)
}

// TestRPM: the same by rpm, as far as Debian's rpm goes: it has a database of its own and knows none of the packages that
// ours needs. B1, B5, B9: an upgrade restarts what runs and nothing else, keeps edited settings and lays the new beside them.
func TestRPM(t *testing.T) {
	purge(t)
	rpm := func(args ...string) { run(t, "rpm", append([]string{"--nodeps"}, args...)...) }
	t.Cleanup(func() {
		_, _ = try(t, "rpm", "--nodeps", "-e", "executord")
		purge(t)
	})
	rpm("-i", "executord-1.rpm")
	// By the presets of this distribution, which enable everything; starting is the administrator's.
	if got := enabled(t, socket); got != "enabled" {
		t.Errorf("%s is %s", socket, got)
	}
	run(t, "systemctl", "start", socket, adminSocket)
	serves(t)

	before := mainPID(t)
	text := readFile(t, settings) + "EXECUTORD_LOG_LEVEL=debug\n"
	writeFile(t, settings, text, 0o644)
	rpm("-U", "executord-2.rpm")
	if now := mainPID(t); now == before || now == 0 {
		t.Errorf("process %d became %d", before, now)
	}
	if readFile(t, settings) != text {
		t.Error("the upgrade changed the settings file")
	}
	if !strings.HasSuffix(readFile(t, settings+".rpmnew"), news) {
		t.Error("the new settings file is not beside the old one")
	}
	serves(t)

	run(t, "systemctl", "stop", service)
	rpm("-U", "--oldpackage", "executord-1.rpm")
	if s := state(t, service); s != "inactive" {
		t.Errorf("the service is %s", s)
	}
	serves(t)

	run(t, "systemctl", "disable", "--now", socket, adminSocket)
	rpm("-U", "executord-2.rpm")
	if got := enabled(t, socket); got != "disabled" {
		t.Errorf("%s is %s", socket, got)
	}

	rpm("-e", "executord")
	for _, unit := range []string{service, socket, adminSocket, "executor-worker.socket"} {
		eventually(t, unit+" is inactive", func() bool { return state(t, unit) == "inactive" })
	}
	if readFile(t, settings+".rpmsave") != text {
		t.Error("the edited settings were not saved")
	}
}
