//go:build executor_faults && amd64

package sandbox

// #define _GNU_SOURCE
// #include <errno.h>
// #include <pthread.h>
// #include <signal.h>
// #include <stddef.h>
// #include <stdlib.h>
// #include <sys/mman.h>
// #include <sys/syscall.h>
// #include <unistd.h>
// static void* wait_for_ever(void* nothing) { for (;;) pause(); return nothing; }
// static int make_threads(int most) {
//   for (int i = 0; i < most; i++) { pthread_t t; int error = pthread_create(&t, NULL, wait_for_ever, NULL); if (error) return error; }
//   return 0;
// }
// // compat_open opens a file by the system calls of 32 bit. Its path has to lie in the first 4 GiB, which V8 keeps
// // empty.
// static long compat_open(const char* path) {
//   char* low = mmap((void*)0x20000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
//   if (low == MAP_FAILED) return -errno;
//   for (size_t i = 0; i == 0 || path[i - 1]; i++) low[i] = path[i];
//   long result = 5;
//   __asm__ volatile("int $0x80" : "+a"(result) : "b"(low), "c"(0), "d"(0) : "memory", "r8", "r9", "r10", "r11");
//   return result;
// }
// // clone_child makes a process that does nothing.
// static int clone_child(long flags) {
//   long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
//   if (pid == 0) for (;;) pause();
//   return pid < 0 ? errno : 0;
// }
// static int clone3_child(unsigned long long flags) {
//   unsigned long long args[11] = {flags};
//   long pid = syscall(SYS_clone3, args, sizeof args);
//   if (pid == 0) for (;;) pause();
//   return pid < 0 ? errno : 0;
// }
import "C"

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attack does what native code of an attacker would do in this process, which is confined like any other, and tells how
// the kernel answered: "refused: EPERM", or "done". Many do not come back. What an attack is about follows its name.
func attack(order string) string {
	name, target, _ := strings.Cut(order, " ")
	try, ok := attacks[name]
	if !ok {
		return "unknown"
	}
	switch err := try(target).(type) {
	case nil:
		return "done"
	case syscall.Errno:
		return "refused: " + unix.ErrnoName(err)
	default:
		return "refused: " + err.Error()
	}
}

// call makes a system call.
func call(number uintptr, args ...uintptr) error {
	_, err := result(number, args...)
	return err
}

func result(number uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return 0, errno
	}
	return r, nil
}

func pointer[T any](v *T) uintptr { return uintptr(unsafe.Pointer(v)) }

func cstring(s string) uintptr {
	b, _ := unix.BytePtrFromString(s)
	kept = append(kept, b)
	return pointer(b)
}

// kept lets what the kernel is to read live on.
var kept []*byte

func number(s string) uintptr {
	n, _ := strconv.Atoi(s)
	return uintptr(n)
}

// plain are attacks of one system call, whose arguments need no more than a target.
func plain(nr uintptr, args ...uintptr) func(string) error {
	return func(string) error { return call(nr, args...) }
}

// on is plain with the target, a number, as an argument more in front.
func on(nr uintptr, args ...uintptr) func(string) error {
	return func(target string) error { return call(nr, append([]uintptr{number(target)}, args...)...) }
}

func opens(flags uintptr) func(string) error {
	return func(target string) error {
		return call(unix.SYS_OPENAT, uintptr(0xffffffffffffff9c), cstring(target), flags, 0o600)
	}
}

func socket(family, kind uintptr) func(string) error { return plain(unix.SYS_SOCKET, family, kind, 0) }

// connects connects a stream socket.
func connects(family uintptr, to unix.Sockaddr) error {
	fd, err := result(unix.SYS_SOCKET, family, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Connect(int(fd), to)
}

func clones(flags C.long) func(string) error {
	return func(string) error { return cErrno(C.clone_child(flags)) }
}

// interfaces asks netlink for a way out.
func interfaces(string) error {
	list, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range list {
		if i.Flags&net.FlagUp != 0 {
			return nil
		}
	}
	return unix.ENETUNREACH
}

func peeks(target string) error {
	var word uint64
	local := unix.Iovec{Base: (*byte)(unsafe.Pointer(&word)), Len: 8}
	remote := unix.RemoteIovec{Base: uintptr(unsafe.Pointer(&word)), Len: 8}
	return call(unix.SYS_PROCESS_VM_READV, number(target), pointer(&local), 1, pointer(&remote), 1, 0)
}

// executes must not succeed, as nothing would be left to tell.
func executes(string) error {
	none := uintptr(0)
	return call(unix.SYS_EXECVE, cstring("/bin/true"), pointer(&none), pointer(&none))
}

// executesMemory writes a program to memory and runs it.
func executesMemory(string) error {
	fd, err := result(unix.SYS_MEMFD_CREATE, cstring("program"), 0)
	if err != nil {
		return err
	}
	script := []byte("#!/bin/true\n")
	if err := call(unix.SYS_WRITE, fd, pointer(&script[0]), uintptr(len(script))); err != nil {
		return err
	}
	none := uintptr(0)
	return call(unix.SYS_EXECVEAT, fd, cstring(""), pointer(&none), pointer(&none), unix.AT_EMPTY_PATH)
}

// until repeats a call that takes something, and tells why there is no more of it.
func until(most int, take func() error) error {
	for range most {
		if err := take(); err != nil {
			return err
		}
	}
	return nil
}

func cErrno(n C.int) error {
	if n == 0 {
		return nil
	}
	return syscall.Errno(n)
}

func compat(target string) error {
	text := C.CString(target)
	defer C.free(unsafe.Pointer(text))
	if r := C.compat_open(text); r < 0 {
		return syscall.Errno(-r)
	}
	return nil
}

// passesDescriptor sends the parent what it did not ask for, within a frame that is none.
func passesDescriptor(string) error {
	if err := unix.Sendmsg(3, make([]byte, 4), unix.UnixRights(0, 1, 2), nil, 0); err != nil {
		return err
	}
	select {} // the parent ends it
}

// overwrites maps the program's own file and another one's memory through /proc.
func overwrites(string) error {
	fd, err := unix.Open("/proc/self/mem", unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = unix.Pwrite(fd, []byte{0xcc}, int64(pointerTo(executes)))
	return err
}

func pointerTo(f func(string) error) uintptr { return **(**uintptr)(unsafe.Pointer(&f)) }

// grows takes all memory that there is, having raised its own limit.
func grows(string) error {
	if err := unix.Prlimit(0, unix.RLIMIT_DATA, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}, nil); err != nil {
		return err
	}
	for {
		b, err := unix.Mmap(-1, 0, 64<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
}

// raises lifts a limit of its own, which has to be all that it may have.
func raises(string) error {
	most := unix.Rlimit{Cur: 1 << 16, Max: 1 << 16}
	return unix.Prlimit(0, unix.RLIMIT_NOFILE, &most, nil)
}

// frames writes to the channel what no worker would.
func frames(bytes string) func(string) error {
	return func(string) error {
		if _, err := unix.Write(3, []byte(bytes)); err != nil {
			return err
		}
		select {} // the parent ends it
	}
}

func floodsStderr(string) error {
	line := []byte(strings.Repeat("x", 4095) + "\n")
	for range 16 << 10 {
		if _, err := unix.Write(2, line); err != nil {
			return err
		}
	}
	return fmt.Errorf("64 MiB were taken and dropped")
}

var attacks = map[string]func(string) error{
	"inet": func(string) error {
		return connects(unix.AF_INET, &unix.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}, Port: 80})
	},
	"inet6": func(string) error {
		return connects(unix.AF_INET6, &unix.SockaddrInet6{Addr: [16]byte{15: 1}, Port: 80})
	},
	"udp": func(string) error {
		fd, err := result(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(int(fd), []byte("x"), 0, &unix.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}, Port: 53})
	},
	"loopback": func(string) error {
		return connects(unix.AF_INET, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: 80})
	},
	"socket-netlink": socket(unix.AF_NETLINK, unix.SOCK_RAW), "socket-vsock": socket(unix.AF_VSOCK, unix.SOCK_STREAM),
	"socket-packet": socket(unix.AF_PACKET, unix.SOCK_RAW), "socket-alg": socket(unix.AF_ALG, unix.SOCK_SEQPACKET),
	"connect": func(name string) error { return connects(unix.AF_UNIX, &unix.SockaddrUnix{Name: name}) }, "interfaces": interfaces, "pass-descriptor": passesDescriptor,

	"open-read": opens(unix.O_RDONLY), "open-write": opens(unix.O_WRONLY | unix.O_CREAT), "open-compat": compat,
	"own-memory": overwrites, "memfd": plain(unix.SYS_MEMFD_CREATE, cstring("x"), 0),
	"open-x32": func(target string) error {
		return call(0x40000000|unix.SYS_OPENAT, uintptr(0xffffffffffffff9c), cstring(target), 0, 0)
	},
	"handle": func(string) error {
		handle := [4]uint32{8, 1}
		return call(unix.SYS_OPEN_BY_HANDLE_AT, uintptr(0xffffffffffffff9c), pointer(&handle), 0)
	},
	"chroot": func(target string) error { return call(unix.SYS_CHROOT, cstring(target)) },

	"kill": on(unix.SYS_KILL, 0), "tgkill": func(t string) error { return call(unix.SYS_TGKILL, number(t), number(t), 0) },
	"kill-all": plain(unix.SYS_KILL, ^uintptr(0), uintptr(unix.SIGKILL)), "queue-signal": func(t string) error {
		info := [32]int32{2: -1} // SI_QUEUE
		return call(unix.SYS_RT_SIGQUEUEINFO, number(t), uintptr(unix.SIGKILL), pointer(&info))
	},
	"ptrace": func(t string) error { return call(unix.SYS_PTRACE, unix.PTRACE_ATTACH, number(t), 0, 0) },
	"seize":  func(t string) error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, number(t), 0, 0) },
	"peek":   peeks, "pidfd": on(unix.SYS_PIDFD_OPEN, 0), "compare": on(unix.SYS_KCMP, 1, 0, 0, 0),
	"limit-other": func(t string) error {
		none := unix.Rlimit{}
		return call(unix.SYS_PRLIMIT64, number(t), unix.RLIMIT_NOFILE, pointer(&none), 0)
	},
	"priority": func(t string) error { return call(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, number(t), 19) },
	"affinity": func(t string) error {
		one := uint64(1)
		return call(unix.SYS_SCHED_SETAFFINITY, number(t), 8, pointer(&one))
	},

	"execute": executes, "execute-memory": executesMemory, "fork": clones(0),
	"fork-bomb":   func(string) error { return until(10000, func() error { return cErrno(C.clone_child(0)) }) },
	"threads":     func(string) error { return cErrno(C.make_threads(10000)) },
	"descriptors": func(string) error { return until(10000, func() error { return call(unix.SYS_EVENTFD2, 0, 0) }) },
	"duplicates":  func(string) error { return until(10000, func() error { return call(unix.SYS_DUP, 2) }) },
	"pipes": func(string) error {
		return until(10000, func() error { var p [2]int32; return call(unix.SYS_PIPE2, pointer(&p), 0) })
	},
	"memory": grows, "raise-limit": raises, "stderr": floodsStderr,
	"lock": func(string) error {
		b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		return unix.Mlock(b)
	},

	"user-namespace": plain(unix.SYS_UNSHARE, unix.CLONE_NEWUSER), "network-namespace": plain(unix.SYS_UNSHARE, unix.CLONE_NEWNET),
	"mount-namespace": plain(unix.SYS_UNSHARE, unix.CLONE_NEWNS), "clone-namespace": clones(unix.CLONE_NEWUSER),
	"clone3-namespace": func(string) error { return cErrno(C.clone3_child(unix.CLONE_NEWUSER)) },
	"setns":            plain(unix.SYS_SETNS, 0, 0),
	"mount":            plain(unix.SYS_MOUNT, cstring("none"), cstring("/"), cstring("tmpfs"), 0, 0),
	"bind-mount":       plain(unix.SYS_MOUNT, cstring("/"), cstring("/"), 0, unix.MS_BIND, 0), "unmount": plain(unix.SYS_UMOUNT2, cstring("/"), unix.MNT_DETACH),
	"pivot-root": plain(unix.SYS_PIVOT_ROOT, cstring("."), cstring(".")), "filesystem": plain(unix.SYS_FSOPEN, cstring("proc"), 0),
	"open-tree": plain(unix.SYS_OPEN_TREE, uintptr(0xffffffffffffff9c), cstring("/"), 1),

	"keyring-read": plain(unix.SYS_KEYCTL, unix.KEYCTL_DESCRIBE, uintptr(0xfffffffb), 0, 0), // of the user session
	"key-add":      plain(unix.SYS_ADD_KEY, cstring("user"), cstring("x"), cstring("x"), 1, uintptr(0xfffffffc)),
	"key-request":  plain(unix.SYS_REQUEST_KEY, cstring("user"), cstring("executord:secret"), 0, 0),
	"io-uring":     func(string) error { var p [30]uint32; return call(unix.SYS_IO_URING_SETUP, 4, pointer(&p)) },
	"userfaultfd":  plain(unix.SYS_USERFAULTFD, 1), "bpf": func(string) error { var a [18]uint64; return call(unix.SYS_BPF, 5, pointer(&a), 144) },
	"perf": func(string) error {
		a := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Config: unix.PERF_COUNT_SW_TASK_CLOCK}
		return call(unix.SYS_PERF_EVENT_OPEN, pointer(&a), 0, ^uintptr(0), ^uintptr(0), 0)
	},
	"landlock": plain(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1), "personality": plain(unix.SYS_PERSONALITY, 0x0040000),
	"ldt":           func(string) error { var d [16]byte; return call(unix.SYS_MODIFY_LDT, 1, pointer(&d), 16) },
	"shared-memory": plain(unix.SYS_SHMGET, 0x65786563, 4096, 0o1666), "queue": func(string) error {
		return call(unix.SYS_MQ_OPEN, cstring("x"), unix.O_CREAT|unix.O_RDWR, 0o600, 0)
	},
	"module": plain(unix.SYS_INIT_MODULE, cstring("x"), 1, cstring("")), "kexec": plain(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0),
	"reboot":     plain(unix.SYS_REBOOT, unix.LINUX_REBOOT_MAGIC1, unix.LINUX_REBOOT_MAGIC2, unix.LINUX_REBOOT_CMD_CAD_OFF, 0),
	"kernel-log": plain(unix.SYS_SYSLOG, 10, 0, 0), "swap": plain(unix.SYS_SWAPOFF, cstring("/none")), "ports": plain(unix.SYS_IOPL, 3),
	"clock": func(string) error { t := unix.Timespec{Sec: 1}; return call(unix.SYS_CLOCK_SETTIME, 0, pointer(&t)) },
	"host":  plain(unix.SYS_SETHOSTNAME, cstring("owned"), 5),
	"root":  plain(unix.SYS_SETUID, 0),
	"capable": func(string) error {
		return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN, 0, 0)
	},
	"dumpable": func(string) error {
		return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	},
	"terminal": func(string) error { c := byte('x'); return call(unix.SYS_IOCTL, 0, unix.TIOCSTI, pointer(&c)) },

	"frame-garbage": frames("\xff\xff\xff\xffgarbage"), "frame-empty": frames("\x00\x00\x00\x00"),
	"frame-kind": frames("\x01\x00\x00\x00\x01"), "frame-forged": frames("\x0c\x00\x00\x00\x86\x63\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
}
