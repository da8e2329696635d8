package packaging

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/executord/executord/ipc/testbin"
)

func TestMain(m *testing.M) {
	status := testbin.Main(m)
	_ = os.RemoveAll(built.dist)
	os.Exit(status)
}

// built are the packages that several tests look at.
var built struct {
	once     sync.Once
	dist     string
	deb, rpm string
}

// packages returns the paths of deb and rpm, which are built once.
func packages(t *testing.T) (deb, rpm string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds packages")
	}
	built.once.Do(func() {
		var err error
		if built.dist, err = os.MkdirTemp("", "executord-packages"); err != nil {
			t.Fatal(err)
		}
		built.deb, built.rpm = build(t, built.dist)
	})
	if built.rpm == "" {
		t.Fatal("the packages cannot be built")
	}
	return built.deb, built.rpm
}

// build builds deb and rpm of the real binaries in dist and returns their paths.
func build(t *testing.T, dist string, environment ...string) (deb, rpm string) {
	t.Helper()
	bin := filepath.Dir(testbin.Worker(t))
	_, _ = testbin.Executord(t), testbin.Executorctl(t)
	cmd := exec.Command("./build", "amd64")
	cmd.Env = append(os.Environ(), append(environment, "DIST="+dist, "BIN="+bin)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	one := func(pattern string) string {
		found, err := filepath.Glob(filepath.Join(dist, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		return found[0]
	}
	return one("*.deb"), one("*.rpm")
}

// TestPackagesAreClean: lintian and rpmlint have nothing to say but what is overridden, with a reason, in deb/lintian-overrides
// and rpm/rpmlint.toml.
func TestPackagesAreClean(t *testing.T) {
	deb, rpm := packages(t)
	t.Run("lintian", func(t *testing.T) {
		out := lint(t, "lintian", "--profile", "debian", "--pedantic", "--allow-root", deb)
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(line, "N:") {
				t.Error(line)
			}
		}
	})
	t.Run("rpmlint", func(t *testing.T) {
		out := lint(t, "rpmlint", "--config", "rpm/rpmlint.toml", rpm)
		if !regexp.MustCompile(`packages and 0 specfiles checked; 0 errors, 0 warnings`).MatchString(out) {
			t.Error(out)
		}
	})
}

// lint returns what a program says of a package.
func lint(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed", name)
	}
	out, err := exec.Command(name, args...).Output()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	return string(out)
}

// TestB7SameBytesUnderAnyUmask: the same commit and binaries give the same packages, whoever builds them.
func TestB7SameBytesUnderAnyUmask(t *testing.T) {
	deb, rpm := packages(t)
	old := syscall.Umask(0o077)
	deb2, rpm2 := build(t, t.TempDir(), "TZ=Asia/Tokyo", "LC_ALL=C")
	syscall.Umask(old)
	for a, b := range map[string]string{deb: deb2, rpm: rpm2} {
		x, err := os.ReadFile(a)
		if err != nil {
			t.Fatal(err)
		}
		y, err := os.ReadFile(b)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, y) {
			t.Errorf("two builds of %s differ", filepath.Base(a))
		}
	}
}

// TestB11OtherMachines: binaries of one machine never go into a package for another.
func TestB11OtherMachines(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"executord", "executorctl", "executor-worker"} {
		if err := os.Symlink(testbin.Executorctl(t), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for arch, want := range map[string]string{"arm64": "no program for arm64", "riscv64": "amd64 and arm64 are known"} {
		cmd := exec.Command("./build", arch)
		cmd.Env = append(os.Environ(), "DIST="+t.TempDir(), "BIN="+bin)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", arch, err, out)
		}
	}
}
