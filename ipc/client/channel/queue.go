package channel

import "sync"

// queue holds the messages that wait to be written, in the order in which they came, bounded in bytes. A message
// larger than the bound fits into an empty queue.
type queue struct {
	bound int64
	wake  chan struct{} // capacity 1: there is something for the writer

	mu      sync.Mutex
	msgs    []message
	bytes   int64 // of msgs and of the message being written
	waiting []*waiter
	shut    bool
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
	refused bool          // the queue was shut first; set before settled is closed
}

func newQueue(bound int64) *queue {
	return &queue{bound: bound, wake: make(chan struct{}, 1)}
}

// push queues msg and returns nil, or returns a waiter when there is no room yet. ok is false when the queue is shut.
// Whoever pushes sees to it that the writer hears of it.
func (q *queue) push(msg message, wait bool) (w *waiter, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shut {
		return nil, false
	}
	if len(q.waiting) == 0 && q.fits(msg) {
		q.add(msg)
		return nil, true
	}
	if !wait {
		return nil, false
	}
	w = &waiter{msg: msg, settled: make(chan struct{})}
	q.waiting = append(q.waiting, w)
	return w, true
}

func (q *queue) fits(msg message) bool {
	return q.bytes == 0 || q.bytes+int64(msg.size()) <= q.bound
}

func (q *queue) add(msg message) {
	q.msgs = append(q.msgs, msg)
	q.bytes += int64(msg.size())
}

// leave gives up a waiter; it reports false when that was settled meanwhile.
func (q *queue) leave(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, x := range q.waiting {
		if x == w {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			q.admit()
			return true
		}
	}
	return false
}

// popOnly takes a message that is the only one, and no larger than most.
func (q *queue) popOnly(most int) (msg message, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.msgs) != 1 || q.msgs[0].size() > most {
		return nil, false
	}
	msg = q.msgs[0]
	q.msgs[0], q.msgs = nil, q.msgs[:0]
	return msg, true
}

// pop takes the oldest message. Its bytes count until written tells that it left.
func (q *queue) pop() (msg message, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.msgs) == 0 {
		return nil, false
	}
	msg = q.msgs[0]
	q.msgs[0] = nil
	q.msgs = q.msgs[1:]
	return msg, true
}

// written frees the room of a popped message and lets waiters in.
func (q *queue) written(msg message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= int64(msg.size())
	q.admit()
}

func (q *queue) admit() {
	for len(q.waiting) > 0 && q.fits(q.waiting[0].msg) {
		w := q.waiting[0]
		q.waiting[0] = nil
		q.waiting = q.waiting[1:]
		q.add(w.msg)
		close(w.settled)
	}
}

// close refuses further messages. Those queued and waiting still leave, unless discard is set.
func (q *queue) close(discard bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shut = true
	if discard {
		for _, w := range q.waiting {
			w.refused = true
			close(w.settled)
		}
		q.msgs, q.waiting, q.bytes = nil, nil, 0
	}
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.msgs) == 0
}
