// Package nowait writes to a connection as much as the kernel takes at once, for a sender that would rather leave the
// rest to somebody else than wait. The channel to a worker and the WebSocket are both written so.
package nowait

import (
	"net"
	"os"
	"syscall"
)

// Writer writes to one connection. It belongs to one goroutine at a time. A write deadline of the connection must not
// have passed, or every Write fails.
type Writer struct {
	raw syscall.RawConn
	do  func(fd uintptr) bool // write, made once: a function made for each Write is garbage
	p   []byte
	n   int
	err error
}

// NewWriter returns nil for a connection that has no descriptor of its own, as with TLS.
func NewWriter(c net.Conn) *Writer {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	w := &Writer{raw: raw}
	w.do = w.write
	return w
}

func (w *Writer) write(fd uintptr) bool {
	w.n, w.err = syscall.Write(int(fd), w.p)
	return true
}

// Write writes once and does not wait: it returns how much the kernel took, which may be nothing.
func (w *Writer) Write(p []byte) (int, error) {
	w.p = p
	err := w.raw.Write(w.do)
	w.p = nil
	switch {
	case err != nil:
		return 0, err
	case w.err == syscall.EAGAIN || w.err == syscall.EINTR:
		return 0, nil
	case w.err != nil:
		return 0, os.NewSyscallError("write", w.err)
	}
	return w.n, nil
}
