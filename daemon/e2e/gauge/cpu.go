package gauge

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ticks is the unit of CPU times in /proc/PID/stat, USER_HZ of the kernel's interface on amd64 and arm64.
const ticks = 10 * time.Millisecond

// ProcessCPU is the CPU time of processes together: user and system, all threads, those that ended too. A process that is
// gone has none.
func ProcessCPU(pids ...int) (sum time.Duration) {
	// The clock of another process, as clock_getcpuclockid(3) makes its id.
	const cpuclockSched = 2
	for _, pid := range pids {
		var t unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|cpuclockSched), &t); err == nil {
			sum += time.Duration(t.Nano())
		}
	}
	return sum
}

// FamilyCPU is the CPU time of a process, of its children, and of the children that it has waited for; these in steps
// of 10 ms.
func FamilyCPU(pid int) time.Duration {
	sum := ProcessCPU(append(Children(pid), pid)...)
	if f := stat(pid); len(f) > 14 {
		for _, field := range f[13:15] { // cutime, cstime
			n, _ := strconv.Atoi(field)
			sum += time.Duration(n) * ticks
		}
	}
	return sum
}

// Children are the process ids of the children of a process, ended ones too until they are waited for.
func Children(parent int) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if f := stat(pid); len(f) > 1 && f[1] == strconv.Itoa(parent) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stat returns the fields of /proc/PID/stat from the state on, the third of proc_pid_stat(5); none if there is no such
// process.
func stat(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}
