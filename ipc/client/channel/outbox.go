package channel

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Outbox holds the messages to one peer that wait to be written, in the order in which they came, bounded in bytes. A
// message larger than the bound fits where nothing waits.
//
// Every Conn has one, which ends with it unless Begin is called: from then on messages are numbered, from 1, and kept
// until Ack tells that the peer has them. Such an Outbox outlives its Conn and takes messages without one; MoveTo then
// has another Conn write what the peer has not got. It ends by Close.
//
// All methods may be called by several goroutines at once.
type Outbox struct {
	bound int64

	mu      sync.Mutex
	owner   *Conn // writes the messages; nobody else may pop them
	msgs    []entry
	head    int   // the first of msgs that is left
	next    int   // the first that is not written or being written
	bytes   int64 // of those not written
	waiting []*waiter
	shut    bool

	numbering bool
	acked     uint64 // messages that the peer has
	sent      uint64 // messages that it may have
	kept      int64  // bytes of those that are numbered and not acknowledged, and of those that wait for room then
	told      int64  // of kept, as watch was told
	watch     func(change int64)
}

// entry is a message of an Outbox. The plain ones, which are not numbered, precede the others.
type entry struct {
	message
	plain bool
}

// message is the parts of one message.
type message [][]byte

func (m message) size() (n int) {
	for _, part := range m {
		n += len(part)
	}
	return n
}

type waiter struct {
	msg     message
	settled chan struct{} // closed once msg is queued, or refused
	refused bool          // the outbox was shut first; set before settled is closed
}

// ErrAck is the error of a peer that claims to have messages that it cannot have, or that are kept no more.
var ErrAck = errors.New("cannot take that number of received messages: it is not one that there can be")

func newOutbox(bound int64, owner *Conn) *Outbox { return &Outbox{bound: bound, owner: owner} }

// Send queues one message, in one part or several, and takes it over. It blocks while there is no room and fails with
// ErrClosed or the context's error; the message is not sent then.
func (o *Outbox) Send(ctx context.Context, msg ...[]byte) error {
	w, ok := o.push(msg, true, true)
	if !ok {
		return ErrClosed
	}
	if w == nil {
		return nil
	}
	select {
	case <-w.settled:
	case <-ctx.Done():
		if o.leave(w) {
			return context.Cause(ctx)
		}
	}
	if w.refused {
		return ErrClosed
	}
	return nil
}

// TrySend is Send for messages that may be left out: it reports false instead of waiting.
func (o *Outbox) TrySend(msg ...[]byte) bool {
	_, ok := o.push(msg, false, true)
	return ok
}

// TryQueue is TrySend for a message that does not hurry: it leaves with what is sent next, or by Hurry.
func (o *Outbox) TryQueue(msg ...[]byte) bool {
	_, ok := o.push(msg, false, false)
	return ok
}

// Hurry has what was queued written.
func (o *Outbox) Hurry() {
	o.mu.Lock()
	c, any := o.owner, o.next < len(o.msgs)
	o.mu.Unlock()
	if any {
		c.sendNow()
	}
}

// Begin queues a last message that is not numbered, if one is given, and has those that follow numbered and kept.
func (o *Outbox) Begin(last ...[]byte) {
	o.mu.Lock()
	if len(last) > 0 {
		o.add(last)
		o.msgs[len(o.msgs)-1].plain = true
	}
	o.numbering = true
	c := o.owner
	o.mu.Unlock()
	c.sendNow()
}

// MoveTo makes c, on which nothing was sent, the writer: first of the message first, if one is given and which is not
// numbered, then of all that the peer has not got, of which it has received so many. The fault is ErrAck or ErrClosed,
// and nothing has changed then. The Conn that was the writer sends no more, and is to be ended by its owner.
func (o *Outbox) MoveTo(c *Conn, received uint64, first ...[]byte) error {
	o.mu.Lock()
	defer o.ease()
	switch {
	case o.shut:
		return ErrClosed
	case received < o.acked || received > o.sent:
		return ErrAck
	}
	for o.head < len(o.msgs) && o.msgs[o.head].plain { // of a connection before
		o.next = o.head + 1
		o.drop(1)
	}
	o.next = o.head + int(received-o.acked)
	o.forget(received)
	if len(first) > 0 {
		o.msgs = slices.Insert(o.msgs, o.head, entry{first, true})
	}
	o.next, o.bytes = o.head, 0
	for _, e := range o.msgs[o.head:] {
		o.bytes += int64(e.size())
	}
	o.owner = c
	o.admit() // nothing else lets them in where the peer has all that was written
	c.out.Swap(o).Close()
	c.nudge()
	return nil
}

// Ack tells that the peer has received so many messages. A number below one that it told before says nothing.
func (o *Outbox) Ack(received uint64) error {
	o.mu.Lock()
	defer o.ease()
	if received > o.acked+uint64(o.next-o.head) && received > o.acked {
		return ErrAck
	}
	o.forget(received)
	return nil
}

// Closed tells whether messages are refused.
func (o *Outbox) Closed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shut
}

// Unacknowledged tells whether messages are kept that the peer may not have.
func (o *Outbox) Unacknowledged() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kept > 0
}

// Unread is the bytes of messages that have left and that the peer has not acknowledged.
func (o *Outbox) Unread() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.kept - o.bytes
	for _, w := range o.waiting {
		n -= int64(w.msg.size())
	}
	return n
}

// Watch has f hear of the bytes that are kept, by the change since it heard last, once that is a step or more, or hardly any
// are left. It is called by whoever made the change.
func (o *Outbox) Watch(f func(change int64)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watch = f
}

// watchStep keeps watchers out of the way of ordinary messages. Below watchFew bytes nothing much is kept: the peer of an idle
// session leaves the last messages unacknowledged.
const (
	watchStep = 1 << 20
	watchFew  = watchStep / 16
)

// tell is called without mu.
func (o *Outbox) tell() {
	o.mu.Lock()
	change, watch := o.kept-o.told, o.watch
	if watch == nil || (change < watchStep && -change < watchStep && !o.shut) || change == 0 {
		o.mu.Unlock()
		return
	}
	o.told = o.kept
	o.mu.Unlock()
	watch(change)
}

// ease gives mu back where fewer bytes may be kept than before, and tells of them, also where a part of a step was the last of
// many. It tells nothing else: a caller may hold what watch takes where they become more.
func (o *Outbox) ease() {
	change, watch := o.kept-o.told, o.watch
	last := o.kept < watchFew && o.told >= watchFew
	if watch == nil || change > -watchStep && !last {
		o.mu.Unlock()
		return
	}
	o.told = o.kept
	o.mu.Unlock()
	watch(change)
}

// Close refuses further messages and drops all that there are.
func (o *Outbox) Close() {
	o.close(true)
	o.tell()
}

// push queues msg and has it written now, or returns a waiter when there is no room yet. ok is false when the outbox is
// shut.
func (o *Outbox) push(msg message, wait, now bool) (w *waiter, ok bool) {
	o.mu.Lock()
	c := o.owner
	switch {
	case o.shut:
	case len(o.waiting) == 0 && o.fits(msg):
		o.add(msg)
		ok = true
	case wait:
		w, ok = &waiter{msg: msg, settled: make(chan struct{})}, true
		o.waiting = append(o.waiting, w)
	}
	if ok && o.numbering {
		o.kept += int64(msg.size())
	}
	large := o.kept-o.told >= watchStep
	o.mu.Unlock()
	if ok && w == nil && now {
		c.sendNow()
	}
	if large {
		o.tell()
	}
	return w, ok
}

func (o *Outbox) fits(msg message) bool {
	return o.bytes == 0 || o.bytes+int64(msg.size()) <= o.bound
}

func (o *Outbox) add(msg message) {
	o.msgs = append(o.msgs, entry{msg, !o.numbering})
	o.bytes += int64(msg.size())
}

// leave gives up a waiter; it reports false when that was settled meanwhile.
func (o *Outbox) leave(w *waiter) bool {
	o.mu.Lock()
	defer o.ease()
	for i, x := range o.waiting {
		if x == w {
			o.waiting = append(o.waiting[:i], o.waiting[i+1:]...)
			if o.numbering {
				o.kept -= int64(w.msg.size())
			}
			o.admit()
			return true
		}
	}
	return false
}

// popSmall takes the oldest message if it is no larger than most.
func (o *Outbox) popSmall(c *Conn, most int) (msg message, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.owner != c || o.next == len(o.msgs) || o.msgs[o.next].size() > most {
		return nil, false
	}
	return o.take(), true
}

// pop takes the oldest message. Its bytes count until written tells that it left.
func (o *Outbox) pop(c *Conn) (msg message, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.owner != c || o.next == len(o.msgs) {
		return nil, false
	}
	return o.take(), true
}

func (o *Outbox) take() message {
	e := o.msgs[o.next]
	o.next++
	if e.plain { // nothing precedes it
		o.drop(1)
	} else {
		o.sent = max(o.sent, o.acked+uint64(o.next-o.head))
	}
	return e.message
}

// forget drops the numbered messages up to that one, which were written.
func (o *Outbox) forget(received uint64) {
	if received <= o.acked {
		return
	}
	n := int(received - o.acked)
	for _, e := range o.msgs[o.head : o.head+n] {
		o.kept -= int64(e.size())
	}
	o.drop(n)
	o.acked = received
}

// drop frees the first n messages, which are before next.
func (o *Outbox) drop(n int) {
	const few = 32
	clear(o.msgs[o.head : o.head+n])
	o.head += n
	switch {
	case o.head == len(o.msgs):
		o.msgs, o.head, o.next = o.msgs[:0], 0, 0
	case o.head >= few && 2*o.head >= len(o.msgs):
		left := copy(o.msgs, o.msgs[o.head:])
		clear(o.msgs[left:])
		o.msgs, o.head, o.next = o.msgs[:left], 0, o.next-o.head
	}
}

// written frees the room of a popped message and lets waiters in.
func (o *Outbox) written(c *Conn, msg message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.owner == c {
		o.bytes -= int64(msg.size())
		o.admit()
	}
}

func (o *Outbox) admit() {
	for len(o.waiting) > 0 && o.fits(o.waiting[0].msg) {
		w := o.waiting[0]
		o.waiting[0] = nil
		o.waiting = o.waiting[1:]
		o.add(w.msg)
		close(w.settled)
	}
}

// connEnds is told by c: of an end in order, after what is queued, or of one that discards it. What is kept stays.
func (o *Outbox) connEnds(c *Conn, discard bool) {
	o.mu.Lock()
	own := o.owner == c && !o.numbering
	o.mu.Unlock()
	if own {
		o.close(discard)
	}
}

// close refuses further messages. Those queued and waiting still leave, unless discard is set.
func (o *Outbox) close(discard bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shut = true
	if discard {
		for _, w := range o.waiting {
			w.refused = true
			close(w.settled)
		}
		o.msgs, o.waiting, o.head, o.next, o.bytes, o.kept = nil, nil, 0, 0, 0, 0
	}
}

// empty tells that nothing waits to be written.
func (o *Outbox) empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.next == len(o.msgs)
}
