package sandbox

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// dataSlack is what a program may make the process map beyond its heap and buffers: V8's zones, code and copies of
// values. The pool allows less of it to be resident (Config.MemorySlackBytes), with a kinder ending; this stops what is
// too fast for its looks.
const dataSlack = 200 << 20

// memory reads and bounds the process's own memory. The files are opened once, before any program runs.
type memory struct {
	statm *os.File
	idle  uint64 // data segment of the idle worker, bytes
}

func openMemory() *memory {
	m := &memory{}
	m.statm, _ = os.Open("/proc/self/statm") // absent in some cages: then heartbeats say 0 and rlimits stay off
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

// bound sets RLIMIT_DATA for a program with these limits. It stops what V8's own limits do not count: resizable
// buffers, WebAssembly memories, parser zones. RLIMIT_AS cannot be used: V8 reserves terabytes of addresses.
func (m *memory) bound(heap, buffers int64) {
	if m.idle == 0 {
		return
	}
	limit := m.idle + 2*uint64(heap) + uint64(buffers) + dataSlack
	var now unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_DATA, &now) != nil {
		return
	}
	now.Cur = min(limit, now.Max)
	_ = unix.Setrlimit(unix.RLIMIT_DATA, &now)
}
