package channel

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/executord/executord/ipc/nowait"
)

// stream is the net.Conn below the WebSocket. It gathers small writes, gives every write a deadline that moves with
// progress, and remembers whether the peer gave a sign of life.
type stream struct {
	net.Conn
	stall time.Duration
	once  *nowait.Writer // guarded by mu; nil where it cannot be done

	mu       sync.Mutex // guards buf and err; held while writing
	buf      []byte
	err      error
	buffered bool

	signs  atomic.Bool // there was a sign of life
	readOK atomic.Bool // no read has failed
}

// blockedWrite is the duration from which a write counts as having waited for the peer: its end is then a sign of
// life. A shorter one only shows that the kernel had room.
const blockedWrite = 50 * time.Millisecond

func newStream(c net.Conn, stall time.Duration) *stream {
	s := &stream{Conn: c, stall: stall, once: nowait.NewWriter(c)}
	s.readOK.Store(true)
	return s
}

// gather starts buffering; until then (the handshake) every write leaves at once.
func (s *stream) gather() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffered = true
	s.buf = make([]byte, 0, bufferBytes)
	s.sign()
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if n > 0 {
		s.sign()
	}
	if err != nil {
		s.readOK.Store(false)
	}
	return n, err
}

// SetWriteDeadline does nothing: a deadline from outside counts a whole message, this type counts progress.
func (s *stream) SetWriteDeadline(time.Time) error { return nil }

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	if !s.buffered {
		return len(p), s.send(p)
	}
	if len(s.buf)+len(p) > cap(s.buf) {
		if err := s.flush(); err != nil {
			return 0, err
		}
	}
	if len(p) >= cap(s.buf) {
		return len(p), s.send(p)
	}
	s.buf = append(s.buf, p...)
	return len(p), nil
}

// Flush writes what was gathered.
func (s *stream) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flush()
}

func (s *stream) flush() error {
	if s.err != nil || len(s.buf) == 0 {
		return s.err
	}
	err := s.send(s.buf)
	s.buf = s.buf[:0]
	return err
}

// gathered is how many bytes wait for a flush.
func (s *stream) gathered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.buf)
}

// TryFlush writes what was gathered as far as the kernel takes it at once.
func (s *stream) TryFlush() (left bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || len(s.buf) == 0 {
		return false, s.err
	}
	n, err := s.once.Write(s.buf)
	if err != nil {
		s.err = err
		return false, err
	}
	s.buf = s.buf[:copy(s.buf, s.buf[n:])]
	return len(s.buf) > 0, nil
}

// send writes all of p, as long as each period of stall sees at least one byte leave. Its error is final.
func (s *stream) send(p []byte) error {
	if s.once != nil {
		n, err := s.once.Write(p)
		if err != nil {
			s.err = err
			return err
		}
		p = p[n:]
	}
	for len(p) > 0 {
		began := time.Now()
		if err := s.Conn.SetWriteDeadline(began.Add(s.stall)); err != nil {
			s.err = err
			return err
		}
		n, err := s.Conn.Write(p)
		p = p[n:]
		if n > 0 && time.Since(began) > blockedWrite {
			s.sign()
		}
		if err != nil && (n == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
			s.err = err
			return err
		}
		if len(p) == 0 {
			_ = s.Conn.SetWriteDeadline(time.Time{}) // or once would fail later; a connection that is gone tells the next write
		}
	}
	return nil
}

func (s *stream) sign() { s.signs.Store(true) }

// signed tells whether there was a sign of life since the last call.
func (s *stream) signed() bool { return s.signs.Swap(false) }
