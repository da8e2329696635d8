package worker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/executord/executord/ipc/nowait"
)

// Defaults of Options.
const (
	DefaultFrameBytes   = 64 << 20
	DefaultQueueBytes   = 1 << 20
	DefaultWriteTimeout = 10 * time.Second
)

const (
	readBufferBytes = 32 << 10
	// eagerBytes of a frame are made room for on the word of its header alone; the rest once that much arrived.
	eagerBytes = 4 << 20
	// keepBytes is the largest write buffer that is kept for the next frames.
	keepBytes = 256 << 10
	// burst is how soon after a sender's own write another message is left to the writer, which gathers what comes.
	burst = 20 * time.Microsecond
	// gatherBytes is how much Gather lets wait.
	gatherBytes = 16 << 10
)

// Errors of Send.
var (
	ErrTooLarge  = errors.New("cannot send message: it is over the frame limit")
	ErrQueueFull = errors.New("cannot send message: the queue is full")
)

// Options of a Conn. A zero field means its default, never "no limit".
type Options struct {
	Side         Side // which end this is; no default
	MaxSend      int  // bytes of a frame's body that is sent, default DefaultFrameBytes
	MaxReceive   int  // bytes of a frame's body that is accepted, default DefaultFrameBytes
	QueueBytes   int  // frames that wait to be written; Send blocks at this many bytes, default DefaultQueueBytes
	WriteTimeout time.Duration

	// WriteLock is held around every write to the socket. A crash handler that holds it for its own last frame never
	// lands in the middle of another. Nil means no lock.
	WriteLock sync.Locker

	// Unwritten hears when something that was sent begins to wait to be written, and when all is written, or lost. A
	// crash handler can let it go before its own last frame. It must not block, nor use the Conn. Nil means nobody.
	Unwritten func(waiting bool)
}

// Conn is one end of a worker's channel. Send, TrySend, Gather, Push, Flush, RaiseMaxReceive, SetReadDeadline and Close may
// be called by any goroutine, Receive by one at a time. What the socket does not take at once is written by a goroutine of
// the Conn's own; Close waits for it.
type Conn struct {
	nc   net.Conn
	once *nowait.Writer // of whoever writes; nil: everything is left to the writer
	r    *bufio.Reader
	opts Options
	most atomic.Int64  // bytes of a frame's body that is accepted: Options.MaxReceive, or raised
	done chan struct{} // the writer ended

	mu      sync.Mutex
	work    sync.Cond // there is something for the writer, or err is set
	room    sync.Cond // the queue was taken or written, or err is set
	queue   []byte    // frames that nobody has taken to write
	due     bool      // the writer is to take them; what Gather let wait is not
	spare   []byte    // the next queue
	writing bool      // somebody has frames that the queue no longer has
	wrote   time.Time // when a sender last wrote
	gathers bool      // a message of Gather has left since the last Push
	waiting bool      // what Unwritten heard last
	err     error     // why nothing can be sent any more
}

// NewConn speaks the contract over nc, which it owns from here on.
func NewConn(nc net.Conn, o Options) (*Conn, error) {
	if o.Side != Parent && o.Side != Worker {
		return nil, fmt.Errorf("cannot open channel: no such %s", o.Side)
	}
	if o.MaxSend < 0 || o.MaxReceive < 0 || o.QueueBytes < 0 || o.WriteTimeout < 0 {
		return nil, errors.New("cannot open channel: a limit is negative")
	}
	setDefault(&o.MaxSend, DefaultFrameBytes)
	setDefault(&o.MaxReceive, DefaultFrameBytes)
	setDefault(&o.QueueBytes, DefaultQueueBytes)
	setDefault(&o.WriteTimeout, DefaultWriteTimeout)
	if o.WriteLock == nil {
		o.WriteLock = noLock{}
	}
	if o.Unwritten == nil {
		o.Unwritten = func(bool) {}
	}
	c := &Conn{nc: nc, r: bufio.NewReaderSize(nc, readBufferBytes), opts: o, done: make(chan struct{})}
	c.most.Store(int64(o.MaxReceive))
	c.work.L, c.room.L = &c.mu, &c.mu
	c.once = nowait.NewWriter(nc)
	go c.write()
	return c, nil
}

func setDefault[T int | time.Duration](p *T, v T) {
	if *p == 0 {
		*p = v
	}
}

type noLock struct{}

func (noLock) Lock()   {}
func (noLock) Unlock() {}

// Send writes m as far as the socket takes it at once, and leaves the rest to the writer. Log lines are always left to
// it, for many come at a time, and so is what follows another message at once; a large payload is written before Send
// returns, to save a copy. When too much waits Send blocks until the writer took it. It fails with ErrTooLarge (the
// channel stays usable), or with the reason why the channel no longer sends. Nil does not mean that the message
// arrived, nor even that it was written.
func (c *Conn) Send(m Message) error { return c.send(m, true, false) }

// TrySend is Send that fails with ErrQueueFull where Send would block.
func (c *Conn) TrySend(m Message) error { return c.send(m, false, false) }

// Gather is Send for messages that come many at a time, from a sender that calls Push before it waits for anything: the
// first after a Push leaves at once, those after it with the next Push, or with what is sent otherwise.
func (c *Conn) Gather(m Message) error { return c.send(m, true, true) }

// Push writes what Gather let wait, without blocking.
func (c *Conn) Push() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gathers = false
	if len(c.queue) > 0 && !c.writing && c.once != nil && c.err == nil {
		c.writeNow()
	}
}

func (c *Conn) send(m Message, wait, gather bool) error {
	if m.kind().sender() != c.opts.Side {
		return fmt.Errorf("cannot send %T: it does not come from the %s", m, c.opts.Side)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && len(c.queue) >= c.opts.QueueBytes {
		if !wait {
			return ErrQueueFull
		}
		c.room.Wait()
	}
	if c.err != nil {
		return c.err
	}
	start := len(c.queue)
	frames, payload := appendFrame(c.queue, m, wait)
	if len(frames)-start-headerBytes+len(payload) > c.opts.MaxSend {
		c.queue = append([]byte(nil), c.queue[:start]...) // lets go of the memory too
		return ErrTooLarge
	}
	if payload != nil {
		return c.writeDirectly(append([]byte(nil), frames[start:]...), payload)
	}
	c.queue = frames
	c.tell()
	_, many := m.(Log)
	switch {
	case many || c.writing || c.once == nil || !gather && !c.alone():
		c.leave()
	case !gather || !c.gathers || len(c.queue) > gatherBytes:
		c.gathers = c.gathers || gather
		c.writeNow()
	}
	return nil
}

// alone tells that a sender may write its message itself, as none came just before it. c.mu is held.
func (c *Conn) alone() bool {
	now := time.Now()
	if now.Sub(c.wrote) < burst {
		return false
	}
	c.wrote = now
	return true
}

// writeDirectly writes a frame without its payload, and then that from where it is, after all that waits. c.mu is held,
// but not while it writes.
func (c *Conn) writeDirectly(frame, payload []byte) error {
	for c.err == nil && c.writing {
		c.room.Wait()
	}
	if c.err != nil {
		return c.err
	}
	frames := append(c.take(), frame...)
	c.tell()
	c.mu.Unlock()
	err := c.writeOut(frames, payload)
	c.mu.Lock()
	c.writing = false
	if err != nil {
		c.fail(err)
	}
	c.tell()
	c.keep(frames)
	c.room.Broadcast()
	c.leave()
	return c.err
}

// writeNow writes what waits, without blocking: waking the writer would cost more than the write. c.mu is held, but
// not during the write.
func (c *Conn) writeNow() {
	frames := c.take()
	c.mu.Unlock()
	n, err := c.tryWrite(frames)
	c.mu.Lock()
	c.writing = false
	switch {
	case err != nil:
		c.fail(err)
	case n < len(frames):
		c.queue = append(frames[n:], c.queue...)
	default:
		c.keep(frames)
	}
	c.tell()
	c.room.Broadcast()
	c.leave()
}

// leave leaves what waits to the writer. c.mu is held.
func (c *Conn) leave() {
	if c.due = len(c.queue) > 0; c.due {
		c.work.Signal()
	}
}

// tell keeps Unwritten up to date. c.mu is held.
func (c *Conn) tell() {
	if waiting := len(c.queue) > 0 || c.writing; waiting != c.waiting {
		c.waiting = waiting
		c.opts.Unwritten(waiting)
	}
}

// take makes the caller the one who writes. c.mu is held.
func (c *Conn) take() []byte {
	frames := c.queue
	c.queue, c.spare, c.writing, c.due = c.spare, nil, true, false
	return frames
}

// keep saves the memory of written frames for the next ones. c.mu is held.
func (c *Conn) keep(frames []byte) {
	if cap(frames) > keepBytes {
		return
	}
	if c.queue == nil {
		c.queue = frames[:0]
	} else {
		c.spare = frames[:0]
	}
}

// tryWrite writes what the socket takes at once.
func (c *Conn) tryWrite(frames []byte) (int, error) {
	c.opts.WriteLock.Lock()
	defer c.opts.WriteLock.Unlock()
	return c.once.Write(frames)
}

// Flush blocks until everything sent before was handed to the kernel. It is bounded by the write timeout.
func (c *Conn) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave() // with what Gather let wait
	for c.err == nil && (len(c.queue) > 0 || c.writing) {
		c.room.Wait()
	}
	return c.err
}

// write is the goroutine that may wait for the socket. It takes all frames that wait at once.
func (c *Conn) write() {
	defer close(c.done)
	for {
		frames := c.await()
		if frames == nil {
			return
		}
		err := c.writeOut(frames)
		c.mu.Lock()
		if err != nil {
			c.fail(err)
		}
		c.writing = false
		c.keep(frames)
		c.tell()
		c.room.Broadcast()
		c.mu.Unlock()
	}
}

// await waits for frames that nobody writes. Nil means that the channel is done.
func (c *Conn) await() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && (c.writing || !c.due) {
		c.work.Wait()
	}
	if c.err != nil {
		return nil
	}
	frames := c.take()
	c.room.Broadcast()
	return frames
}

// writeOut writes all of the texts, waiting for the socket.
func (c *Conn) writeOut(texts ...[]byte) error {
	c.opts.WriteLock.Lock()
	defer c.opts.WriteLock.Unlock()
	if err := c.nc.SetWriteDeadline(time.Now().Add(c.opts.WriteTimeout)); err != nil {
		return err
	}
	for _, text := range texts {
		if _, err := c.nc.Write(text); err != nil {
			return err
		}
	}
	return c.nc.SetWriteDeadline(time.Time{}) // or tryWrite would fail later
}

// fail ends sending. A peer that is gone may have left frames that explain why, so then reading goes on until its
// end; any other failure closes the socket. c.mu is held.
func (c *Conn) fail(err error) {
	if c.err == nil {
		c.err = fmt.Errorf("cannot write to channel: %w", err)
	}
	c.queue = nil
	c.work.Signal()
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		c.nc.Close()
	}
}

// RaiseMaxReceive accepts frames with a body of up to n bytes from now on. It never lowers what is accepted.
func (c *Conn) RaiseMaxReceive(n int) {
	for most := c.most.Load(); most < int64(n); most = c.most.Load() {
		c.most.CompareAndSwap(most, int64(n))
	}
}

// Receive returns the next message of the other side; its memory belongs to the caller. At the end of the channel it
// returns io.EOF, io.ErrUnexpectedEOF within a frame, and a *FrameError when the other side broke the format.
func (c *Conn) Receive() (Message, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(c.r, header[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(header[:])
	if most := c.most.Load(); size == 0 || int64(size) > most {
		return nil, frameErrorf("frame of %d bytes, the limit is %d", size, most)
	}
	body, err := c.readBody(int(size))
	if err != nil {
		return nil, err
	}
	return Decode(c.opts.Side.other(), body)
}

// Buffered tells that Receive has a whole frame, or the beginning of one that its buffer cannot hold: it would return
// without waiting, or wait for no more than the rest. It belongs to the goroutine of Receive.
func (c *Conn) Buffered() bool {
	n := c.r.Buffered()
	if n < headerBytes {
		return false
	}
	header, _ := c.r.Peek(headerBytes)
	size := uint64(binary.LittleEndian.Uint32(header))
	return uint64(n) >= headerBytes+size || headerBytes+size > readBufferBytes
}

// readBody reads size bytes. A header alone never makes it allocate more than eagerBytes.
func (c *Conn) readBody(size int) ([]byte, error) {
	body := make([]byte, min(size, eagerBytes))
	if err := c.readFull(body); err != nil || size == len(body) {
		return body, err
	}
	whole := make([]byte, size)
	copy(whole, body)
	return whole, c.readFull(whole[len(body):])
}

func (c *Conn) readFull(b []byte) error {
	_, err := io.ReadFull(c.r, b)
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (s Side) other() Side {
	if s == Parent {
		return Worker
	}
	return Parent
}

// SetReadDeadline makes a Receive under way or to come fail with os.ErrDeadlineExceeded at t. Receive is of no use
// after that, for it may have stopped within a frame. The zero time means no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.nc.SetReadDeadline(t) }

// Close closes the socket, drops what was not written (see Flush) and makes Send and Receive fail. It may be called
// more than once.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.err == nil {
		c.err = net.ErrClosed
	}
	c.work.Broadcast()
	c.room.Broadcast()
	c.mu.Unlock()
	err := c.nc.Close()
	<-c.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
