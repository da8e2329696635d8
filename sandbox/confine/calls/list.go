package calls

import "golang.org/x/sys/unix"

// Arguments that the list looks at.
const (
	threadFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD
	threadExtra = unix.CLONE_SYSVSEM | unix.CLONE_SETTLS | unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID
)

// list has what comes often first.
var list = []call{
	{"futex", 202, 98, allow, nil, "every lock, of Go, of V8 and of the C library"},
	{"nanosleep", 35, 101, allow, nil, "the thread of the Go runtime that looks after the others"},
	{"mprotect", 10, 226, allow, nil, "memory of V8 and malloc; code that V8 compiles becomes executable"},
	{"madvise", 28, 233, allow, nil, "memory is given back"},
	{"mmap", 9, 222, allow, []condition{{3, has, unix.MAP_ANONYMOUS}}, "memory, never of a file"},
	{"munmap", 11, 215, allow, nil, "memory is given back"},
	{"brk", 12, 214, allow, nil, "memory of malloc"},
	{"mremap", 25, 216, allow, nil, "realloc of large blocks"},
	{"read", 0, 63, allow, nil, "the channel, timers and wake-ups"},
	{"write", 1, 64, allow, nil, "the channel, wake-ups and standard error"},
	{"ppoll", 271, 73, allow, nil, "waiting for the channel"},
	{"poll", 7, absent, allow, nil, "the same in C"},
	{"timerfd_settime", 286, 86, allow, nil, "the clock of the watchdog"},
	{"clock_gettime", 228, 113, allow, nil, "CPU time; all times where the vDSO does not know the clock of the machine"},
	{"gettimeofday", 96, 169, allow, nil, "times in C, likewise"},
	{"time", 201, absent, allow, nil, "likewise"},
	{"clock_getres", 229, 114, allow, nil, "likewise"},
	{"clock_nanosleep", 230, 115, allow, nil, "sleep in C"},
	{"getrandom", 318, 278, allow, nil, "seeds of V8, keys of Web Crypto"},
	{"getpid", 39, 172, allow, nil, "to signal its own threads"},
	{"gettid", 186, 178, allow, nil, "likewise"},
	{"tgkill", 234, 131, allow, []condition{{0, own, 0}}, "Go interrupts its own threads; a crash report ends by its signal"},
	{"sched_yield", 24, 124, allow, nil, "spinning politely"},
	{"pread64", 17, 67, allow, nil, "its memory in /proc, the symbols of a crash report"},
	{"getrlimit", 97, 163, allow, nil, "the limit on memory of a program"},
	{"prlimit64", 302, 261, allow, []condition{{0, equal, 0}}, "likewise, of itself only"},
	{"epoll_pwait", 281, 22, allow, nil, "timers of Go"},
	{"epoll_create1", 291, 20, allow, nil, "the first timer of Go"},
	{"epoll_ctl", 233, 21, allow, nil, "the first timer of Go"},
	{"eventfd2", 290, 19, allow, nil, "the first timer of Go"},
	{"close", 3, 57, allow, nil, "the end of the channel"},
	{"shutdown", 48, 210, allow, nil, "the end of the channel"},

	{"clone", 56, 220, allow, []condition{{0, has, threadFlags}, {0, within, threadFlags | threadExtra}}, "threads, never processes nor namespaces"},
	{"clone3", 435, 435, absence, nil, "its flags are in memory; the C library goes on with clone"},
	{"set_robust_list", 273, 99, allow, nil, "a new thread"},
	{"rseq", 334, 293, allow, nil, "a new thread"},
	{"sched_getaffinity", 204, 123, allow, nil, "the C library counts processors"},
	{"sched_getparam", 143, 121, allow, nil, "the C library asks for attributes of a thread"},
	{"sched_getscheduler", 145, 120, allow, nil, "likewise"},
	{"sysinfo", 99, 179, allow, nil, "qsort asks how much memory there is"},

	{"pkey_mprotect", 329, 288, allow, nil, "generated code, where the processor has protection keys"},
	{"pkey_alloc", 330, 289, allow, nil, "likewise"},
	{"pkey_free", 331, 290, allow, nil, "likewise"},

	{"rt_sigreturn", 15, 139, allow, nil, "the end of a signal handler"},
	{"rt_sigprocmask", 14, 135, allow, nil, "Go starts threads with signals blocked; crash reports"},
	{"rt_sigaction", 13, 134, allow, nil, "crash reports"},
	{"sigaltstack", 131, 132, allow, nil, "a thread of Go"},
	{"restart_syscall", 219, 128, allow, nil, "the kernel goes on with a sleep that a stop interrupted"},
	{"process_vm_readv", 310, 270, allow, []condition{{0, own, 0}}, "crash reports read a stack that may be broken"},
	{"timer_create", 222, 107, allow, nil, "crash reports end in time"},
	{"timer_settime", 223, 110, allow, nil, "likewise"},
	{"pause", 34, absent, allow, nil, "threads that crash at the same time wait"},
	{"lseek", 8, 62, allow, nil, "stdio of C on standard error"},
	{"exit", 60, 93, allow, nil, "the end of a thread"},
	{"exit_group", 231, 94, allow, nil, "the end"},

	{"openat", 257, 56, denied, nil, "the C library looks for /sys/devices/system/cpu/online, ICU for time zones"},
	{"open", 2, absent, denied, nil, "likewise"},
	{"readlink", 89, absent, denied, nil, "ICU looks at /etc/localtime"},
	{"readlinkat", 267, 78, denied, nil, "likewise"},
	{"access", 21, absent, denied, nil, "libraries look for files"},
	{"faccessat", 269, 48, denied, nil, "likewise"},
	{"faccessat2", 439, 439, denied, nil, "likewise"},
	{"stat", 4, absent, denied, nil, "likewise"},
	{"newfstatat", 262, 79, denied, nil, "likewise, and stdio about standard error"},
	{"fstat", 5, 80, denied, nil, "stdio about standard error"},
	{"statx", 332, 291, denied, nil, "likewise"},
	{"ioctl", 16, 29, denied, nil, "stdio asks whether standard error is a terminal"},
	{"prctl", 157, 167, denied, nil, "Go names its memory"},
}
