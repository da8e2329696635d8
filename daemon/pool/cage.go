package pool

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/ipc/worker"
)

// nobody is the user and group that a child has, within its user namespace and, where the parent is root, also outside.
const nobody = 65534

// spaces are the namespaces that a child gets besides that of users. It makes one of mounts itself, as it still needs
// those of the machine until its program is loaded.
var spaces = []struct {
	flag  uintptr
	layer string
}{
	{unix.CLONE_NEWNET, worker.LayerNetwork},
	{unix.CLONE_NEWPID, worker.LayerPID},
	{unix.CLONE_NEWIPC, worker.LayerIPC},
	{unix.CLONE_NEWUTS, worker.LayerUTS},
}

// rlimits of a child, soft and hard. Those on memory it sets itself, for each program.
var rlimits = []struct {
	resource int
	most     uint64
}{
	{unix.RLIMIT_CORE, 0}, // a crash must not fill the disk, nor leave a program's data there
	{unix.RLIMIT_FSIZE, 0},
	{unix.RLIMIT_MEMLOCK, 0},
	{unix.RLIMIT_MSGQUEUE, 0},
	{unix.RLIMIT_RTPRIO, 0},
	{unix.RLIMIT_NOFILE, 64}, // it has about a dozen
	{unix.RLIMIT_NPROC, 64},  // likewise, of threads; only in a user namespace, as else the whole user's count
}

// cage is what a parent makes around a child before its program starts.
type cage struct {
	user   bool    // a user namespace
	spaces uintptr // others, as flags of clone(2)
	drop   bool    // this process is root, and the child is not

	missing map[string]error // the layers that this machine does not give, and why
}

func (c *cage) miss(layer string, why error) {
	if c.missing == nil {
		c.missing = map[string]error{}
	}
	c.missing[layer] = why
}

// widestCage finds what this process can have, by trying.
func widestCage() cage {
	root := os.Geteuid() == 0
	all := cage{user: true, drop: root}
	for _, s := range spaces {
		all.spaces |= s.flag
	}
	if all.try() == nil {
		return all
	}
	var c cage
	widen := func(layer string, change func(*cage)) {
		wider := c
		change(&wider)
		if err := wider.try(); err != nil {
			c.miss(layer, err)
		} else {
			c = wider
		}
	}
	widen(worker.LayerUser, func(c *cage) { c.user = true })
	for _, s := range spaces {
		widen(s.layer, func(c *cage) { c.spaces |= s.flag })
	}
	if root {
		widen(worker.LayerID, func(c *cage) { c.drop = true })
	}
	return c
}

// try starts a program that does not exist in the cage: it gets as far as that where the cage can be had.
func (c cage) try() error {
	_, err := os.StartProcess("/proc/self/fd/none", []string{"none"}, &os.ProcAttr{Dir: "/", Sys: c.attr()})
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return errors.Unwrap(err)
}

// attr describes the child to the system.
func (c cage) attr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: c.spaces}
	uid, gid := os.Geteuid(), os.Getegid()
	if c.drop {
		uid, gid = nobody, nobody
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	if c.user {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: gid, Size: 1}}
		attr.GidMappingsEnableSetgroups = c.drop // to leave the groups of root
	}
	if c.user || c.drop && c.spaces != 0 {
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP} // to empty its root; it drops them before it has a thread
	}
	return attr
}

// isolation is what the cage gives, with what became of rlimits.
func (c cage) isolation(limits error) (layers, missing []string) {
	note := func(layer string, has bool, why error) {
		if has {
			layers = append(layers, layer)
		} else {
			missing = append(missing, fmt.Sprintf("%s: %v", layer, why))
		}
	}
	note(worker.LayerProcess, true, nil)
	note(worker.LayerUser, c.user, c.missing[worker.LayerUser])
	for _, s := range spaces {
		note(s.layer, c.spaces&s.flag != 0, c.missing[s.layer])
	}
	note(worker.LayerID, c.drop || os.Geteuid() != 0, c.missing[worker.LayerID])
	note(worker.LayerRlimits, limits == nil, limits)
	return layers, missing
}

// limit sets the rlimits of a child.
func (c cage) limit(pid int) error {
	var faults []error
	for _, l := range rlimits {
		if l.resource == unix.RLIMIT_NPROC && !c.user {
			continue
		}
		if err := unix.Prlimit(pid, l.resource, &unix.Rlimit{Cur: l.most, Max: l.most}, nil); err != nil {
			faults = append(faults, os.NewSyscallError("prlimit", err))
		}
	}
	return errors.Join(faults...)
}
