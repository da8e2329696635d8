package testbin

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/executord/executord/ipc/protocol"
)

// Attempt is one attack of native code in a worker, as the faulty worker makes it (sandbox/attacks_on.go). Its target may name
// daemon and sibling, which become process numbers, and socket and abstract.
type Attempt struct {
	Name, Target string
	Sealed       string // how it ends; several by " or "
	Unsealed     string // how it ends without the filter where all other layers are in force; empty where the kernel may do it then
}

// Targets are what may be attacked besides the attacker's own process.
type Targets struct {
	Daemon, Sibling  int    // processes: the service's, and another worker's
	Socket, Abstract string // of Sockets
}

// Sockets listens on two sockets of this process until the test ends: one with a path, one without.
func Sockets(tb testing.TB) (path, abstract string) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), "socket")
	abstract = "@executord" + strings.ReplaceAll(path, "/", "-")
	for _, address := range []string{path, abstract} {
		listener, err := net.Listen("unix", address)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = listener.Close() })
	}
	return path, abstract
}

// Program has a worker make the attempt.
func (a Attempt) Program(t Targets) string {
	target := strings.NewReplacer("daemon", fmt.Sprint(t.Daemon), "sibling", fmt.Sprint(t.Sibling), "abstract", t.Abstract).Replace(a.Target)
	if a.Target == "socket" {
		target = t.Socket
	}
	return "console.log('attack:" + strings.TrimSpace(a.Name+" "+target) + "')"
}

// Missed tells that a worker which should have attacked its sibling was that sibling itself.
func (a Attempt) Missed(o *protocol.Outcome, sibling string) bool {
	return a.Target == "sibling" && o.Stats.Worker == sibling
}

// End is how an attempt ended, by the outcome of its program.
func End(o *protocol.Outcome) string {
	switch {
	case o.Error != nil && o.Error.Type == protocol.WorkerCrashed:
		return o.Error.Reason
	case o.Error != nil:
		return string(o.Error.Type)
	case len(o.Logs) != 2:
		return fmt.Sprintf("%d lines", len(o.Logs))
	}
	return strings.TrimPrefix(o.Logs[1].Text, "refused: ")
}

// EndsBy tells whether an end is one of those that are wanted, as Sealed and Unsealed list them.
func EndsBy(end, wanted string) bool { return slices.Contains(strings.Split(wanted, " or "), end) }

const (
	killed = "signal:SIGSYS" // the filter ended the process
	lied   = "protocol"      // the pool ended it
)

// Attempts are those of the red team, for every launcher.
var Attempts = []Attempt{
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
	{"fork-bomb", "", killed, "EAGAIN or signal:SIGABRT"}, // what has to start a thread meanwhile cannot
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
