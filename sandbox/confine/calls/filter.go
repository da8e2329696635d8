package calls

import (
	"fmt"
	"runtime"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// architecture is what a filter needs to know of one.
type architecture struct {
	audit  uint32 // AUDIT_ARCH_* of linux/audit.h
	number func(call) int
	most   uint32 // numbers from here on are of another table of the kernel, 0 where there is none
}

var architectures = map[string]architecture{
	"amd64": {unix.AUDIT_ARCH_X86_64, func(c call) int { return c.amd64 }, 0x40000000}, // x32
	"arm64": {unix.AUDIT_ARCH_AARCH64, func(c call) int { return c.arm64 }, 0},
}

// Where struct seccomp_data (linux/seccomp.h) has its fields; both architectures are little-endian.
const (
	numberAt = 0
	archAt   = 4
	argsAt   = 16
)

// Otherwise is what becomes of a call that is not in the list, or fails its conditions.
type Otherwise uint32

const (
	Kill Otherwise = unix.SECCOMP_RET_KILL_PROCESS // it ends the process by SIGSYS
	Log  Otherwise = unix.SECCOMP_RET_LOG          // it is made, and the kernel's log tells: for making the list
)

// Filter is the list as a program for seccomp(2), for the process of that number.
func Filter(pid int, otherwise Otherwise) []unix.SockFilter {
	raw, err := bpf.Assemble(assemble(architectures[runtime.GOARCH], uint32(pid), uint32(otherwise)))
	if err != nil {
		panic(fmt.Sprintf("calls: the filter cannot be assembled: %v", err)) // a test makes it for each architecture
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return filter
}

func assemble(a architecture, pid, otherwise uint32) []bpf.Instruction {
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: archAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: a.audit, SkipTrue: 1},
		bpf.RetConstant{Val: otherwise},
		bpf.LoadAbsolute{Off: numberAt, Size: 4},
	}
	if a.most > 0 {
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: a.most, SkipTrue: 1}, bpf.RetConstant{Val: otherwise})
	}
	for _, c := range list {
		number := a.number(c)
		if number == absent {
			continue
		}
		body := c.assemble(pid, otherwise)
		program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(number), SkipFalse: uint8(len(body))})
		program = append(program, body...)
	}
	return append(program, bpf.RetConstant{Val: otherwise})
}

// assemble is what becomes of the call once its number is known. It always ends the program.
func (c call) assemble(pid, otherwise uint32) (body []bpf.Instruction) {
	for _, g := range c.given {
		body = append(body, bpf.LoadAbsolute{Off: uint32(argsAt + 8*g.arg), Size: 4})
		body = append(body, g.assemble(pid)...)
		body = append(body, bpf.RetConstant{Val: otherwise})
	}
	return append(body, bpf.RetConstant{Val: c.verdict.action()})
}

// assemble skips the next instruction where the condition holds for what is loaded.
func (g condition) assemble(pid uint32) []bpf.Instruction {
	switch g.is {
	case own:
		return []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: pid, SkipTrue: 1}}
	case within:
		return []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: ^g.what, SkipTrue: 1}}
	case has:
		return []bpf.Instruction{
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: g.what}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: g.what, SkipTrue: 1},
		}
	}
	return []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: g.what, SkipTrue: 1}}
}

func (v verdict) action() uint32 {
	switch v {
	case denied:
		return unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	case absence:
		return unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	}
	return unix.SECCOMP_RET_ALLOW
}
