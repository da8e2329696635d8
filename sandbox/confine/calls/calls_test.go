package calls

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestNumbersAreThoseOfTheKernel compares the list with the tables of golang.org/x/sys, which come from the kernel's.
func TestNumbersAreThoseOfTheKernel(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range architectures {
		numbers := kernelNumbers(t, filepath.Join(strings.TrimSpace(string(dir)), "unix", "zsysnum_linux_"+name+".go"))
		for _, c := range list {
			want, known := numbers[c.name]
			if got := a.number(c); known && got != want || !known && got != absent {
				t.Errorf("%s on %s is %d here, %d there", c.name, name, got, want)
			}
		}
	}
}

func kernelNumbers(t *testing.T, file string) map[string]int {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	numbers := map[string]int{}
	for s := bufio.NewScanner(f); s.Scan(); {
		var name string
		var n int
		if _, err := fmt.Sscanf(s.Text(), " SYS_%s = %d", &name, &n); err == nil {
			numbers[strings.ToLower(name)] = n
		}
	}
	if len(numbers) < 250 {
		t.Fatalf("%d system calls in %s", len(numbers), file)
	}
	return numbers
}

func TestListIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range list {
		if c.reason == "" || seen[c.name] {
			t.Errorf("%s has no reason, or is there twice", c.name)
		}
		seen[c.name] = true
		if len(c.given) > 0 && c.verdict != allow {
			t.Errorf("%s has conditions that change nothing", c.name)
		}
	}
}

// TestFilter runs the filter of each architecture on calls, as the kernel would.
func TestFilter(t *testing.T) {
	const pid = 77
	const pthread = 0x3d0f00 // of the C library
	for name, a := range architectures {
		vm, err := bpf.NewVM(assemble(a, pid, uint32(Kill)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		judge := func(audit uint32, number int, args ...uint64) uint32 {
			verdict, err := vm.Run(data(audit, number, args...))
			if err != nil {
				t.Fatal(err)
			}
			return uint32(verdict)
		}
		nr := func(name string) int {
			for _, c := range list {
				if c.name == name {
					return a.number(c)
				}
			}
			t.Fatalf("%s is not in the list", name)
			return 0
		}
		const eperm, enosys = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM), unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
		const yes, kill = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_KILL_PROCESS
		for _, x := range []struct {
			call string
			args []uint64
			want uint32
		}{
			{"read", nil, yes},
			{"futex", nil, yes},
			{"exit_group", nil, yes},
			{"openat", nil, eperm},
			{"clone3", nil, enosys},
			{"tgkill", []uint64{pid, 80, 23}, yes},
			{"tgkill", []uint64{1, 80, 9}, kill},
			{"process_vm_readv", []uint64{pid}, yes},
			{"process_vm_readv", []uint64{pid + 1}, kill},
			{"prlimit64", []uint64{0, 2}, yes},
			{"prlimit64", []uint64{1, 2}, kill},
			{"mmap", []uint64{0, 1, 7, unix.MAP_ANONYMOUS | unix.MAP_PRIVATE}, yes},
			{"mmap", []uint64{0, 1, 7, unix.MAP_SHARED}, kill},
			{"clone", []uint64{pthread}, yes},
			{"clone", []uint64{threadFlags | unix.CLONE_SYSVSEM}, yes}, // of Go
			{"clone", []uint64{uint64(unix.SIGCHLD)}, kill},
			{"clone", []uint64{unix.CLONE_VM | unix.CLONE_VFORK | uint64(unix.SIGCHLD)}, kill},
			{"clone", []uint64{pthread | unix.CLONE_NEWUSER}, kill},
			{"clone", []uint64{pthread | unix.CLONE_NEWNET}, kill},
			{"clone", []uint64{pthread &^ unix.CLONE_FS}, kill},
		} {
			if got := judge(a.audit, nr(x.call), x.args...); got != x.want {
				t.Errorf("%s%#x on %s gives %#x, want %#x", x.call, x.args, name, got, x.want)
			}
		}
		for other, b := range architectures {
			if got := judge(b.audit, nr("read")); other != name && got != kill {
				t.Errorf("a call of %s on %s gives %#x", other, name, got)
			}
		}
		for number := range 1024 { // what is not in the list
			if !listed(a, number) && judge(a.audit, number) != kill {
				t.Errorf("call %d on %s is not refused", number, name)
			}
		}
		if a.most > 0 && judge(a.audit, int(a.most)|nr("read")) != kill {
			t.Errorf("the other table of %s is open", name)
		}
	}
}

func listed(a architecture, number int) bool {
	for _, c := range list {
		if a.number(c) == number {
			return true
		}
	}
	return false
}

// data is a struct seccomp_data, in the byte order that package bpf reads packets in.
func data(audit uint32, number int, args ...uint64) []byte {
	b := make([]byte, 64)
	binary.BigEndian.PutUint32(b[numberAt:], uint32(number))
	binary.BigEndian.PutUint32(b[archAt:], audit)
	for i, arg := range args {
		binary.BigEndian.PutUint32(b[argsAt+8*i:], uint32(arg))
	}
	return b
}
