package pool

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/worker"
)

// The red team: an attacker has native code in the worker (sandbox/attacks_on.go), which is the real one in the cage of the
// real launcher. Each attempt is made twice: as it is, and without the filter on system calls, to see what stands then.

// attempt is one attack. Its target may name daemon and sibling, which become process numbers, and socket and abstract.
type attempt struct {
	name, target string
	sealed       string // how it ends
	unsealed     string // how it ends without the filter where all other layers are in force; empty where the kernel may do it then
}

const (
	killed = "signal:SIGSYS" // the filter ended the process
	lied   = "protocol"      // the pool ended it
)

var attempts = []attempt{
	{"inet", "", killed, "EACCES"},
	{"inet6", "", killed, "EACCES"},
	{"udp", "", killed, "ENETUNREACH"},
	{"loopback", "", killed, "EACCES"},
	{"interfaces", "", killed, "ENETUNREACH"},
	{"socket-netlink", "", killed, ""},
	{"socket-vsock", "", killed, ""},
	{"socket-packet", "", killed, "EPERM"},
	{"socket-alg", "", killed, ""},
	{"connect", "socket", killed, "ENOENT"},
	{"connect", "abstract", killed, "ECONNREFUSED"},
	{"connect", "/run/dbus/system_bus_socket", killed, "ENOENT"},
	{"pass-descriptor", "", killed, lied},

	{"open-read", "/etc/passwd", "EPERM", "ENOENT"},
	{"open-read", "/", "EPERM", "EACCES"},
	{"open-read", "/proc/daemon/environ", "EPERM", "ENOENT"},
	{"open-write", "/tmp/x", "EPERM", "ENOENT"},
	{"open-write", "/dev/shm/x", "EPERM", "ENOENT"},
	{"open-compat", "/etc/passwd", killed + " or signal:SIGSEGV", "ENOENT or signal:SIGSEGV"},
	{"open-x32", "/etc/passwd", killed, "ENOSYS"},
	{"own-memory", "", "EPERM", "ENOENT"},
	{"memfd", "", killed, ""},
	{"handle", "", killed, "EPERM"},
	{"chroot", "/", killed, "EPERM"},

	{"kill", "daemon", killed, "ESRCH"},
	{"kill", "sibling", killed, "ESRCH"},
	{"kill-all", "", killed, "ESRCH"},
	{"tgkill", "daemon", killed, "ESRCH"},
	{"tgkill", "sibling", killed, "ESRCH"},
	{"queue-signal", "daemon", killed, "ESRCH"},
	{"ptrace", "daemon", killed, "ESRCH"},
	{"ptrace", "sibling", killed, "ESRCH"},
	{"seize", "sibling", killed, "ESRCH"},
	{"peek", "daemon", killed, "ESRCH"},
	{"peek", "sibling", killed, "ESRCH"},
	{"pidfd", "daemon", killed, "ESRCH"},
	{"compare", "daemon", killed, "ESRCH"},
	{"limit-other", "daemon", killed, "ESRCH"},
	{"priority", "daemon", killed, "ESRCH"},
	{"affinity", "daemon", killed, "ESRCH"},

	{"execute", "", killed, "ENOENT"},
	{"execute-memory", "", killed, "EFBIG"},
	{"fork", "", killed, ""},
	{"fork-bomb", "", killed, "EAGAIN"},
	{"threads", "", "EAGAIN or signal:SIGABRT", "EAGAIN or signal:SIGABRT"},
	{"descriptors", "", "EMFILE", "EMFILE"},
	{"duplicates", "", killed, "EMFILE"},
	{"pipes", "", killed, "EMFILE"},
	{"memory", "", "memory_limit", "memory_limit"},
	{"raise-limit", "", "EPERM", "EPERM"},
	{"lock", "", killed, "EPERM"},
	{"stderr", "", "64 MiB were taken and dropped", "64 MiB were taken and dropped"},

	{"user-namespace", "", killed, ""},
	{"clone-namespace", "", killed, ""},
	{"clone3-namespace", "", "ENOSYS", ""},
	{"network-namespace", "", killed, "EPERM"},
	{"mount-namespace", "", killed, "EPERM"},
	{"setns", "", killed, "EINVAL"},
	{"mount", "", killed, "EPERM"},
	{"bind-mount", "", killed, "EPERM"},
	{"unmount", "", killed, "EPERM"},
	{"pivot-root", "", killed, "EPERM"},
	{"filesystem", "", killed, "EPERM"},
	{"open-tree", "", killed, "EPERM"},

	{"keyring-read", "", killed, ""},
	{"key-add", "", killed, ""},
	{"key-request", "", killed, "ENOKEY"},
	{"io-uring", "", killed, ""},
	{"userfaultfd", "", killed, ""},
	{"bpf", "", killed, ""},
	{"perf", "", killed, ""},
	{"landlock", "", killed, ""},
	{"personality", "", killed, ""},
	{"ldt", "", killed, ""},
	{"shared-memory", "", killed, ""},
	{"queue", "", killed, "EMFILE or ENOSYS"},
	{"module", "", killed, ""},
	{"kexec", "", killed, ""},
	{"reboot", "", killed, "EPERM"},
	{"kernel-log", "", killed, "EPERM"},
	{"swap", "", killed, "EPERM"},
	{"ports", "", killed, ""},
	{"clock", "", killed, "EPERM"},
	{"host", "", killed, "EPERM"},
	{"root", "", killed, "EINVAL"},
	{"capable", "", "EPERM", "EPERM"},
	{"dumpable", "", "EPERM", ""},
	{"terminal", "", "EPERM", "ENOTTY"},

	{"frame-garbage", "", lied, lied},
	{"frame-empty", "", lied, lied},
	{"frame-kind", "", lied, lied},
	{"frame-forged", "", lied, lied},
}

func TestRedTeam(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the attacks are written for amd64")
	}
	if testing.Short() {
		t.Skip("each attack takes a worker")
	}
	sealed, unsealed := redTeam(t), redTeam(t, "unsealed")
	whole := len(expected(t)) == len(worker.Layers())
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	for _, a := range attempts {
		with, without := sealed.attack(a), unsealed.attack(a)
		fmt.Fprintf(table, "%s %s\t%s\twithout the filter: %s\n", a.name, a.target, with, without)
		if !slices.Contains(strings.Split(a.sealed, " or "), with) {
			t.Errorf("%s %s ended by %q, want %q", a.name, a.target, with, a.sealed)
		}
		if whole && a.unsealed != "" && !slices.Contains(strings.Split(a.unsealed, " or "), without) {
			t.Errorf("%s %s without the filter ended by %q, want %q", a.name, a.target, without, a.unsealed)
		}
	}
	table.Flush()
	for _, x := range []*team{sealed, unsealed} {
		if died := x.Stats().Totals.Crashed; died != x.crashes {
			t.Errorf("%d workers died, of which %d were the attacker's", died, x.crashes)
		}
	}
	if with := redTeam(t, "logging").attack(attempt{name: "memfd"}); with != "done" {
		t.Errorf("a filter that only logs ended an attack by %q", with)
	}
	t.Logf("%d attempts\n%s", len(attempts), &text)
}

// team is a pool of two faulty workers, one of which is attacked by the other, and what else may be attacked.
type team struct {
	*bench
	socket, abstract string
	crashes          uint64 // of attackers
}

func redTeam(t *testing.T, args ...string) *team {
	t.Helper()
	l, err := NewChild(t.Context(), ChildConfig{Path: testbin.FaultyWorker(t), Args: args})
	if err != nil {
		t.Fatal(err)
	}
	c := testConfig()
	c.Workers, c.WorkerMaxExecutions, c.Launcher = 2, 1, l
	c.Limits.HeapMiB, c.Limits.BufferMiB, c.Limits.SlackMiB = 32, 16, 64
	b := newBench(t, c, realOutside())
	b.waitReady()
	x := &team{bench: b, socket: filepath.Join(t.TempDir(), "socket"), abstract: "@executord-" + filepath.Base(t.TempDir()) + fmt.Sprint(os.Getpid())}
	for _, address := range []string{x.socket, x.abstract} {
		listener, err := net.Listen("unix", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
	}
	return x
}

// attack has a worker make an attempt, tells how it ended, and wants that nobody else noticed.
func (x *team) attack(a attempt) string {
	x.t.Helper()
	x.waitReady()
	sibling := x.Workers()
	target := strings.NewReplacer("daemon", fmt.Sprint(os.Getpid()), "sibling", fmt.Sprint(sibling[0].PID), "abstract", x.abstract).Replace(a.target)
	if a.target == "socket" {
		target = x.socket
	}
	out := x.run(program("console.log('attack:" + strings.TrimSpace(a.name+" "+target) + "')"))
	if next := x.run(program("return 42")); string(next.Value) != "42" {
		x.t.Errorf("after %s: %v", a.name, next.Error)
	}
	switch {
	case out.Error != nil && out.Error.Type == protocol.WorkerCrashed:
		x.crashes++
		return out.Error.Reason
	case out.Error != nil:
		return string(out.Error.Type)
	case len(out.Logs) != 2:
		return fmt.Sprintf("logs %q", texts(out))
	}
	return strings.TrimPrefix(out.Logs[1].Text, "refused: ")
}
