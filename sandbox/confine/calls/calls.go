// Package calls is the list of system calls that a worker may make once it serves, and the seccomp filter made of it.
//
// The list is data: a line a call, with its number on each architecture and the reason why it is there. A call that is not
// in it ends the process, for no honest worker makes it. Package confine installs the filter; a test of the pool runs the
// workers of this version of V8 under it. It must hold no line whose reason is "to be safe".
package calls

// Engine is the version of V8 that the list was made with. Another one has to be traced again; HACKING.md says how.
const Engine = "13.6.233.10"

// absent is the number of a call that an architecture does not have.
const absent = -1

// call is a line of the list.
type call struct {
	name         string
	amd64, arm64 int
	verdict      verdict
	given        []condition // all have to hold, or the call ends the process
	reason       string
}

// verdict is what happens to a call.
type verdict uint8

const (
	allow   verdict = iota
	denied          // EPERM, for what libraries try and do without
	absence         // ENOSYS, for what libraries have another way for
)

// condition is on one argument.
type condition struct {
	arg  int
	is   test
	what uint32
}

// test compares the low half of an argument. The kernel takes no more of any of these, but for flags of clone, whose high half is
// not looked at either (clone(2) has 32 bits).
type test uint8

const (
	equal  test = iota
	own         // the number of this process
	within      // no bit is set but those of what
	has         // all bits of what are set
)
