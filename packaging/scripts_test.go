package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stub writes down how it was called. What deb-systemd-helper was-enabled answers, the test decides.
const stub = `#!/bin/sh
echo "${0##*/} $*" >>"$CALLS"
case "$*" in *was-enabled*) exit "$WAS_DISABLED" ;; esac
# As the helper undoes its own mask, where the test has it as such.
case "${0##*/} $1" in "deb-systemd-helper unmask") [ -z "$OWN_MASK" ] || rm -f "$DPKG_ROOT/etc/systemd/system/$2" ;; esac
`

// tcpLink is there when the administrator enabled executord-tcp.socket.
const tcpLink = "etc/systemd/system/sockets.target.wants/executord-tcp.socket"

// machine is a folder that stands for a machine, and what its programs were asked.
type machine struct {
	root        string
	wasDisabled string
	ownMask     string
}

// newMachine has systemd running, and a file in each folder of the service.
func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{root: t.TempDir(), wasDisabled: "0"}
	for _, dir := range []string{"bin", "run/systemd/system", "run/executord/worker-root/usr", "etc/systemd/system/sockets.target.wants", "etc/executord", "var/lib/executord"} {
		if err := os.MkdirAll(filepath.Join(m.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"systemctl", "deb-systemd-helper", "deb-systemd-invoke", "systemd-sysusers", "systemd-tmpfiles"} {
		m.write(t, "bin/"+name, stub, 0o755)
	}
	for _, name := range []string{"readlink", "rm", "rmdir"} { // PATH has nothing else of this machine
		program, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(program, filepath.Join(m.root, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"run/executord/executord.sock", "run/executord/admin.sock", "run/executord/worker.sock", "var/lib/executord/maintenance.json", tcpLink} {
		m.write(t, name, "", 0o644)
	}
	return m
}

func (m *machine) write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(m.root, path), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) mask(t *testing.T) {
	t.Helper()
	if err := os.Symlink("/dev/null", filepath.Join(m.root, "etc/systemd/system/executord.socket")); err != nil {
		t.Fatal(err)
	}
}

// call runs a script as dpkg or rpm does, and returns what it asked for, without the machine's folder, and its exit status.
func (m *machine) call(t *testing.T, script string, args ...string) ([]string, int) {
	t.Helper()
	calls := filepath.Join(m.root, "calls")
	cmd := exec.Command("/bin/sh", append([]string{script}, args...)...)
	cmd.Env = []string{
		"PATH=" + filepath.Join(m.root, "bin"), "DPKG_ROOT=" + m.root, "CALLS=" + calls,
		"WAS_DISABLED=" + m.wasDisabled, "OWN_MASK=" + m.ownMask,
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	t.Logf("%s", out)
	text, err := os.ReadFile(calls)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.FieldsFunc(strings.ReplaceAll(string(text), m.root, ""), func(r rune) bool { return r == '\n' }), cmd.ProcessState.ExitCode()
}

// files lists the files and folders of the service.
func (m *machine) files(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{tcpLink, "run/executord", "run/executord/*", "etc/executord", "etc/executord/*", "var/lib/executord", "var/lib/executord/*"} {
		paths, err := filepath.Glob(filepath.Join(m.root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			found = append(found, strings.TrimPrefix(path, m.root))
		}
	}
	return found
}

// What the scripts of the deb ask for, at most once each.
const (
	debStart     = "deb-systemd-invoke start executord.socket executord-admin.socket executord-tcp.socket"
	debRestart   = "deb-systemd-invoke try-restart executord.service"
	debStop      = "deb-systemd-invoke stop executord.socket executord-tcp.socket executord-admin.socket executord.service executor-worker.socket executord-workers.slice"
	debEnable    = "deb-systemd-helper enable executord.socket"
	debUpdate    = "deb-systemd-helper update-state executord.socket"
	debMask      = "deb-systemd-helper mask executord.socket executord-admin.socket"
	debPurge     = "deb-systemd-helper purge executord.socket executord-admin.socket executord-tcp.socket"
	debSysusers  = "systemd-sysusers --root= executord.conf"
	daemonReload = "systemctl --system daemon-reload"
)

var debActions = []string{debStart, debRestart, debStop, debEnable, debUpdate, debMask, debPurge, debSysusers, daemonReload}

// TestB3DebScripts: each script does what is due for each argument that Debian Policy 6.5 documents, and nothing else of it.
func TestB3DebScripts(t *testing.T) {
	configured := []string{debEnable, debSysusers, daemonReload}
	with := func(more ...string) []string { return append(more, configured...) }
	for _, c := range []struct {
		script, args, given string
		want                []string
		status              int
	}{
		{script: "postinst", args: "configure", want: with(debStart)},
		{script: "postinst", args: "configure 1.0.0", want: with(debRestart)},
		{script: "postinst", args: "configure 1.0.0", given: "removed", want: with(debStart)},
		{script: "postinst", args: "configure 1.0.0", given: "masked", want: with(debRestart)},
		{script: "postinst", args: "configure 1.0.0", given: "disabled", want: []string{debUpdate, debSysusers, daemonReload, debRestart}},
		{script: "postinst", args: "configure", given: "no systemd", want: []string{debEnable, debSysusers}},
		{script: "postinst", args: "abort-upgrade 1.0.1", want: configured},
		{script: "postinst", args: "abort-remove", want: with(debStart)},
		{script: "postinst", args: "abort-remove in-favour other 1.0", want: with(debStart)},
		{script: "postinst", args: "abort-deconfigure in-favour other 1.0", want: configured},
		{script: "postinst", args: "abort-deconfigure in-favour other 1.0 removing third 1.0", want: configured},
		{script: "postinst", args: "1", status: 1},
		{script: "postinst", args: "", status: 1},

		{script: "prerm", args: "remove", want: []string{debStop}},
		{script: "prerm", args: "remove in-favour other 1.0", want: []string{debStop}},
		{script: "prerm", args: "remove", given: "no systemd"},
		{script: "prerm", args: "upgrade 1.0.1"},
		{script: "prerm", args: "deconfigure in-favour other 1.0"},
		{script: "prerm", args: "deconfigure in-favour other 1.0 removing third 1.0"},
		{script: "prerm", args: "failed-upgrade 1.0.0 1.0.1"},
		{script: "prerm", args: "0", status: 1},
		{script: "prerm", args: "", status: 1},

		{script: "postrm", args: "remove", want: []string{debMask, daemonReload}},
		{script: "postrm", args: "remove", given: "no systemd", want: []string{debMask}},
		{script: "postrm", args: "purge", want: []string{debPurge}},
		{script: "postrm", args: "purge", given: "no helper"},
		{script: "postrm", args: "upgrade 1.0.1"},
		{script: "postrm", args: "failed-upgrade 1.0.0 1.0.1"},
		{script: "postrm", args: "abort-install"},
		{script: "postrm", args: "abort-install 1.0.0 1.0.1"},
		{script: "postrm", args: "abort-upgrade 1.0.0 1.0.1"},
		{script: "postrm", args: "disappear other 1.0"},
		{script: "postrm", args: "0", status: 1},
		{script: "postrm", args: "", status: 1},
	} {
		t.Run(strings.TrimSpace(c.script+" "+c.args+" "+c.given), func(t *testing.T) {
			m := newMachine(t)
			switch c.given {
			case "removed":
				m.mask(t)
				m.ownMask = "yes"
			case "masked":
				m.mask(t)
			case "disabled":
				m.wasDisabled = "1"
			case "no systemd":
				m.remove(t, "run/systemd")
			case "no helper":
				m.remove(t, "bin/deb-systemd-helper")
			}
			calls, status := m.call(t, "deb/"+c.script, strings.Fields(c.args)...)
			if status != c.status {
				t.Errorf("exit status %d", status)
			}
			compare(t, calls, debActions, c.want)
		})
	}
}

func (m *machine) remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(m.root, path)); err != nil {
		t.Fatal(err)
	}
}

// compare fails unless of all actions the calls have exactly those that are wanted, once.
func compare(t *testing.T, calls, actions, want []string) {
	t.Helper()
	for _, action := range actions {
		n := 0
		for _, call := range calls {
			if call == action {
				n++
			}
		}
		if wanted := slices.Contains(want, action); wanted && n != 1 || !wanted && n != 0 {
			t.Errorf("%d times: %s\nall calls:\n%s", n, action, strings.Join(calls, "\n"))
		}
	}
}

// TestDebPurgeKeepsForeignFiles: what the service made is removed, what others put beside it stays.
func TestDebPurgeKeepsForeignFiles(t *testing.T) {
	all := []string{"/" + tcpLink, "/run/executord", "/etc/executord", "/var/lib/executord", "/var/lib/executord/maintenance.json"}
	for _, c := range []struct {
		name, script, args, foreign string
		want                        []string
	}{
		{name: "removed", script: "postrm", args: "remove", want: all},
		{name: "removed, a file in /run", script: "postrm", args: "remove", foreign: "run/executord/mine", want: append([]string{"/run/executord/mine"}, all...)},
		{name: "purged", script: "postrm", args: "purge"},
		{name: "purged, a token file", script: "postrm", args: "purge", foreign: "etc/executord/tokens", want: []string{"/etc/executord", "/etc/executord/tokens"}},
		{name: "purged, a file with the state", script: "postrm", args: "purge", foreign: "var/lib/executord/mine", want: []string{"/var/lib/executord", "/var/lib/executord/mine"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			if c.args == "purge" { // it comes after a removal
				m.call(t, "deb/postrm", "remove")
			}
			if c.foreign != "" {
				m.write(t, c.foreign, "mine", 0o600)
			}
			if _, status := m.call(t, "deb/"+c.script, c.args); status != 0 {
				t.Errorf("exit status %d", status)
			}
			got := m.files(t)
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// What the scripts of the rpm ask for.
const (
	rpmSysusers = "systemd-sysusers executord.conf"
	rpmPreset   = "systemctl --no-reload preset executord.socket executord-admin.socket"
	rpmReload   = "systemctl daemon-reload"
	rpmRestart  = "systemctl try-restart executord.service"
	rpmDisable  = "systemctl --no-reload disable executord.socket executord-admin.socket executord-tcp.socket"
	rpmStop     = "systemctl stop executord.socket executord-tcp.socket executord-admin.socket executord.service executor-worker.socket executord-workers.slice"
)

// TestB3RPMScripts: the scripts get a number, how many versions stay, and do what is due for each.
func TestB3RPMScripts(t *testing.T) {
	for _, c := range []struct {
		script, arg string
		want        []string
	}{
		{"post", "1", []string{rpmSysusers, rpmPreset, rpmReload}},
		{"post", "2", []string{rpmSysusers, rpmReload}},
		{"post", "3", []string{rpmSysusers, rpmReload}}, // two versions were there at once
		{"preun", "0", []string{rpmDisable, rpmStop}},
		{"preun", "1", nil},
		{"postun", "0", []string{rpmReload}},
		{"postun", "1", []string{rpmReload, rpmRestart}},
		{"postun", "2", []string{rpmReload, rpmRestart}},
	} {
		t.Run(c.script+" "+c.arg, func(t *testing.T) {
			calls, status := newMachine(t).call(t, "rpm/"+c.script, c.arg)
			if status != 0 {
				t.Errorf("exit status %d", status)
			}
			compare(t, calls, []string{rpmSysusers, rpmPreset, rpmReload, rpmRestart, rpmDisable, rpmStop}, c.want)
		})
	}
	t.Run("without systemd", func(t *testing.T) {
		for script, arg := range map[string]string{"post": "1", "preun": "0", "postun": "1"} {
			m := newMachine(t)
			m.write(t, "bin/systemctl", "#!/bin/sh\nexit 1\n", 0o755)
			m.write(t, "bin/systemd-sysusers", "#!/bin/sh\nexit 1\n", 0o755)
			if _, status := m.call(t, "rpm/"+script, arg); status != 0 {
				t.Errorf("%s: exit status %d", script, status)
			}
		}
	})
}

// TestScriptsAreClean has shellcheck read every script: of packages, of CI and of the examples.
func TestScriptsAreClean(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("shellcheck is not installed")
	}
	var scripts []string
	for _, pattern := range []string{"build", "deb/p*", "rpm/p*", "container/check", "../systemd/box/run", "../systemd/box/sdbox.sh", "../.ci/[a-z]*", "../docs/examples/*.sh"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range found {
			if ext := filepath.Ext(filepath.Base(file)); ext == "" || ext == ".sh" { // what scripts read lies beside them
				scripts = append(scripts, file)
			}
		}
	}
	if out, err := exec.Command("shellcheck", scripts...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
