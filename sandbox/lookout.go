package sandbox

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/ipc/worker"
)

// tick is how long a program may keep its thread before another one hears the parent in its place.
const tick = 20 * time.Millisecond

// lookEvery is how often a busy program is looked at, for what is no clock.
const lookEvery = 50 * time.Millisecond

// lookout decides who hears the parent. While the loop waits it reads the channel itself, so that a result wakes the
// one thread that needs it and no other. While a program keeps that thread, a second thread watches its clocks, and
// once the program has been busy for a tick it reads the channel as well: a cancellation, or the parent's end, is then
// noticed whatever JavaScript does.
type lookout struct {
	conn   *worker.Conn
	socket *worker.Socket
	hear   func(worker.Message) // acts on a message, on either thread
	lost   func()               // the channel ended
	look   func() time.Duration // watches the clocks, and says when to do so again; zero for never

	clock int // timerfd(2): when the second thread looks
	yield int // eventfd(2): tells the second thread to give up the channel
	stop  int // eventfd(2): tells the loop that it was stopped

	ears   sync.Mutex    // held by whoever reads the channel
	wanted atomic.Bool   // the loop waits for ears
	turn   atomic.Uint64 // counts when the loop begins and ends to wait; odd while a program has the thread
	slack  atomic.Bool   // the clock is set for the limits alone, as a loop that waits needs no ticks
}

// newLookout makes the descriptors. The thread of the loop is taken for busy until it waits.
func newLookout(conn *worker.Conn, socket *worker.Socket) (*lookout, error) {
	l := &lookout{conn: conn, socket: socket}
	l.turn.Store(1)
	var err error
	if l.clock, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("cannot watch programs: %w", os.NewSyscallError("timerfd_create", err))
	}
	for _, fd := range []*int{&l.yield, &l.stop} {
		if *fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
			return nil, fmt.Errorf("cannot watch programs: %w", os.NewSyscallError("eventfd", err))
		}
	}
	return l, nil
}

// arm sets the clock of the second thread, and unsets it for zero.
func (l *lookout) arm(d time.Duration) {
	_ = unix.TimerfdSettime(l.clock, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(d.Nanoseconds())}, nil)
}

func signal(fd int) {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(fd, one[:])
}

// drained takes back what makes an eventfd or timerfd ready.
func drained(fd int) {
	var count [8]byte
	_, _ = unix.Read(fd, count[:])
}

// wait blocks the loop until messages were heard, it was stopped, or the time until came (zero: never). heard is asked
// before it blocks, in case a message came while somebody else listened.
func (l *lookout) wait(until time.Time, heard func() bool) {
	l.conn.Push()
	l.turn.Add(1)
	if !l.ears.TryLock() {
		l.wanted.Store(true)
		signal(l.yield)
		l.ears.Lock()
		l.wanted.Store(false)
	}
	if !heard() {
		l.listen(until)
	}
	l.ears.Unlock()
	l.turn.Add(1)
	if l.slack.Swap(false) {
		l.arm(tick)
	}
}

func (l *lookout) listen(until time.Time) {
	const channel, stop = 1, 2
	if !l.conn.Buffered() {
		ready, err := worker.Await(until, worker.PollFD(l.socket.Descriptor(), unix.POLLIN), worker.PollFD(l.stop, unix.POLLIN))
		if err != nil {
			l.lost()
		}
		if ready&stop != 0 {
			drained(l.stop)
		}
		if ready&channel == 0 {
			return
		}
	}
	l.receive()
}

// receive acts on the next message, and on those that came with it.
func (l *lookout) receive() {
	for {
		m, err := l.conn.Receive()
		if err != nil {
			l.lost()
		}
		l.hear(m)
		if !l.conn.Buffered() {
			return
		}
	}
}

// watch is the second thread.
func (l *lookout) watch() {
	const clock, yield, channel = 1, 2, 4
	fds := []unix.PollFd{worker.PollFD(l.clock, unix.POLLIN), worker.PollFD(l.yield, unix.POLLIN), worker.PollFD(l.socket.Descriptor(), unix.POLLIN)}
	listening := false
	var seen uint64
	for {
		n := 2
		if listening {
			n = 3
		}
		ready, err := worker.Await(time.Time{}, fds[:n]...)
		if err != nil {
			l.lost()
		}
		if ready&yield != 0 {
			drained(l.yield)
		}
		switch {
		case listening && l.wanted.Load():
			listening = false
			l.slack.Store(true) // the loop sets the clock when it goes on
			l.ears.Unlock()
		case listening && ready&channel != 0:
			l.receive()
		}
		if ready&clock != 0 {
			drained(l.clock)
			listening, seen = l.tick(listening, seen)
		}
	}
}

// tick is what the second thread does when its clock is due. seen is the turn of the last time.
func (l *lookout) tick(listening bool, seen uint64) (bool, uint64) {
	l.conn.Push() // of a program that goes on
	next := l.look()
	turn := l.turn.Load()
	switch {
	case next == 0: // nothing runs
	case turn%2 == 0:
		l.arm(next)
		l.slack.Store(true)
		if l.turn.Load() != turn && l.slack.Swap(false) { // it went on meanwhile, and did not see it
			l.arm(tick)
		}
	case listening, turn == seen && l.ears.TryLock():
		listening = true
		l.arm(min(next, lookEvery))
	default:
		l.arm(min(next, tick))
	}
	return listening, turn
}
