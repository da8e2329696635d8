package worker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
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
	eagerBytes = 1 << 20
	// keepBytes is the largest write buffer that is kept for the next frames.
	keepBytes = 256 << 10
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
}

// Conn is one end of a worker's channel. Send, TrySend, Flush, SetReadDeadline and Close may be called by any
// goroutine, Receive by one at a time. One goroutine of its own does all writing; Close waits for it.
type Conn struct {
	nc   net.Conn
	r    *bufio.Reader
	opts Options
	done chan struct{} // the writer ended

	mu      sync.Mutex
	work    sync.Cond // there is something to write, or err is set
	room    sync.Cond // the queue was taken or written, or err is set
	queue   []byte    // frames not yet taken by the writer
	writing bool      // the writer has frames that the queue no longer has
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
	c := &Conn{nc: nc, r: bufio.NewReaderSize(nc, readBufferBytes), opts: o, done: make(chan struct{})}
	c.work.L, c.room.L = &c.mu, &c.mu
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

// Send queues m for writing and returns; it touches no socket itself. When the queue is full it blocks until the
// writer took what is there. It fails with ErrTooLarge (the channel stays usable), or with the reason why the channel
// no longer sends. Nil does not mean that the message arrived, nor even that it was written.
func (c *Conn) Send(m Message) error { return c.send(m, true) }

// TrySend is Send that fails with ErrQueueFull where Send would block.
func (c *Conn) TrySend(m Message) error { return c.send(m, false) }

func (c *Conn) send(m Message, wait bool) error {
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
	c.queue = Append(c.queue, m)
	if len(c.queue)-start-headerBytes > c.opts.MaxSend {
		c.queue = append([]byte(nil), c.queue[:start]...) // lets go of the memory too
		return ErrTooLarge
	}
	c.work.Signal()
	return nil
}

// Flush blocks until everything sent before was handed to the kernel. It is bounded by the write timeout.
func (c *Conn) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && (len(c.queue) > 0 || c.writing) {
		c.room.Wait()
	}
	return c.err
}

// write is the only goroutine that writes to the socket. It takes all frames that wait at once.
func (c *Conn) write() {
	defer close(c.done)
	var spare []byte
	for {
		frames := c.takeQueue(spare)
		if frames == nil {
			return
		}
		if err := c.writeOut(frames); err != nil {
			c.fail(err)
			return
		}
		spare = nil
		if cap(frames) <= keepBytes {
			spare = frames[:0]
		}
	}
}

// takeQueue waits for frames and leaves spare as the next queue. Nil means that the channel is done.
func (c *Conn) takeQueue(spare []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing {
		c.writing = false
		c.room.Broadcast()
	}
	for c.err == nil && len(c.queue) == 0 {
		c.work.Wait()
	}
	if c.err != nil {
		return nil
	}
	frames := c.queue
	c.queue, c.writing = spare, true
	c.room.Broadcast()
	return frames
}

func (c *Conn) writeOut(frames []byte) error {
	c.opts.WriteLock.Lock()
	defer c.opts.WriteLock.Unlock()
	if err := c.nc.SetWriteDeadline(time.Now().Add(c.opts.WriteTimeout)); err != nil {
		return err
	}
	_, err := c.nc.Write(frames)
	return err
}

// fail ends sending. A peer that is gone may have left frames that explain why, so then reading goes on until its
// end; any other failure closes the socket.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = fmt.Errorf("cannot write to channel: %w", err)
	}
	c.queue, c.writing = nil, false
	c.room.Broadcast()
	c.mu.Unlock()
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		c.nc.Close()
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
	if size == 0 || uint64(size) > uint64(c.opts.MaxReceive) {
		return nil, frameErrorf("frame of %d bytes, the limit is %d", size, c.opts.MaxReceive)
	}
	body, err := c.readBody(int(size))
	if err != nil {
		return nil, err
	}
	return Decode(c.opts.Side.other(), body)
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
