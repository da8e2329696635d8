package sandbox

import (
	"bytes"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/ipc/worker"
	"github.com/executord/executord/sandbox/confine"
)

// dataSlack is what a program may make the process map beyond what may be resident: the pool's ending is kinder, and this
// stops what is too fast for its looks.
const dataSlack = 72 << 20

// memory reads and bounds the process's own memory. The files are opened once, before any program runs.
type memory struct {
	statm *os.File
	idle  uint64 // data segment of the idle worker, bytes
}

func openMemory() *memory {
	m := &memory{statm: confine.Statm()} // absent in some cages: then heartbeats say 0 and rlimits stay off
	_, m.idle = m.read()
	return m
}

// read gives resident memory and data segment, in bytes.
func (m *memory) read() (resident, data uint64) {
	if m.statm == nil {
		return 0, 0
	}
	var b [128]byte
	n, _ := m.statm.ReadAt(b[:], 0)
	fields := bytes.Fields(b[:n])
	if len(fields) < 6 {
		return 0, 0
	}
	page := uint64(os.Getpagesize())
	r, _ := strconv.ParseUint(string(fields[1]), 10, 64)
	d, _ := strconv.ParseUint(string(fields[5]), 10, 64)
	return r * page, d * page
}

// bound sets RLIMIT_DATA for a program. It stops what V8's own limits do not count: shared buffers, V8's zones, code,
// copies of values. RLIMIT_AS cannot be used: V8 reserves terabytes of
// addresses.
func (m *memory) bound(request worker.Execute) {
	if m.idle == 0 || without(request, "rlimit") {
		return
	}
	l := request.Limits
	m.set(m.idle + 2*uint64(l.HeapBytes) + uint64(l.BufferBytes) + uint64(l.SlackBytes) + dataSlack)
}

// lift takes the bound away: what comes next is not the program's.
func (m *memory) lift() {
	if m.idle != 0 {
		m.set(math.MaxUint64)
	}
}

func (m *memory) set(limit uint64) {
	var now unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_DATA, &now) != nil {
		return
	}
	now.Cur = min(limit, now.Max)
	_ = unix.Setrlimit(unix.RLIMIT_DATA, &now)
}
