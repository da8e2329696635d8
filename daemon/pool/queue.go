package pool

import "container/list"

// fairQueue holds those who wait: first come first served within an identity, and in turn between identities, so that
// nobody's requests wait for more than one request of each other identity per place. It is not safe for several
// goroutines.
type fairQueue struct {
	lanes map[string]*lane // of identities that wait or run
	ring  list.List        // of *lane that have someone waiting, the front is served next
	size  int
}

// lane is one identity.
type lane struct {
	identity string
	waiting  list.List     // of *waiter
	turn     *list.Element // in ring, nil when nobody waits
	running  int
	calling  int // of those, retained ones with invocations
}

// waiter is one request that waits.
type waiter struct {
	identity string
	grant    chan *member // gets the worker; capacity 1
	lane     *lane
	place    *list.Element // in lane.waiting, nil when not queued
}

func newWaiter(identity string) *waiter {
	return &waiter{identity: identity, grant: make(chan *member, 1)}
}

// enter returns the identity's lane, which stays until leave finds it empty.
func (q *fairQueue) enter(identity string) *lane {
	if q.lanes == nil {
		q.lanes = map[string]*lane{}
	}
	l := q.lanes[identity]
	if l == nil {
		l = &lane{identity: identity}
		q.lanes[identity] = l
	}
	return l
}

// leave forgets a lane where nobody waits or runs.
func (q *fairQueue) leave(l *lane) {
	if l.waiting.Len() == 0 && l.running == 0 {
		delete(q.lanes, l.identity)
	}
}

// load is how many of an identity wait or run, as crowd counts them.
func (q *fairQueue) load(identity string, workers int) int {
	if l := q.lanes[identity]; l != nil {
		return l.waiting.Len() + crowd(l.running, l.calling, workers)
	}
	return 0
}

// push queues w behind its own and returns its place in the whole queue, from 1.
func (q *fairQueue) push(w *waiter) int {
	w.lane = q.enter(w.identity)
	w.place = w.lane.waiting.PushBack(w)
	if w.lane.turn == nil {
		w.lane.turn = q.ring.PushBack(w.lane)
	}
	q.size++
	return q.position(w.lane)
}

// pushFront queues w before everybody: it had its turn and got nothing for it.
func (q *fairQueue) pushFront(w *waiter) {
	w.lane = q.enter(w.identity)
	w.place = w.lane.waiting.PushFront(w)
	if w.lane.turn == nil {
		w.lane.turn = q.ring.PushFront(w.lane)
	} else {
		q.ring.MoveToFront(w.lane.turn)
	}
	q.size++
}

// position is the place of the last in lane l if nobody came or left any more.
func (q *fairQueue) position(l *lane) int {
	turns := l.waiting.Len() // the last of l is served in l's turn of this number
	n, before := turns, true
	for e := q.ring.Front(); e != nil; e = e.Next() {
		other := e.Value.(*lane)
		switch {
		case other == l:
			before = false
		case before:
			n += min(other.waiting.Len(), turns)
		default:
			n += min(other.waiting.Len(), turns-1)
		}
	}
	return n
}

// pop takes who is next, nil when nobody waits.
func (q *fairQueue) pop() *waiter {
	turn := q.ring.Front()
	if turn == nil {
		return nil
	}
	l := turn.Value.(*lane)
	w := l.waiting.Front().Value.(*waiter)
	q.ring.MoveToBack(turn)
	q.remove(w)
	return w
}

// remove takes w out; false when it is not queued any more.
func (q *fairQueue) remove(w *waiter) bool {
	if w.place == nil {
		return false
	}
	w.lane.waiting.Remove(w.place)
	w.place = nil
	q.size--
	if w.lane.waiting.Len() == 0 {
		q.ring.Remove(w.lane.turn)
		w.lane.turn = nil
	}
	q.leave(w.lane)
	return true
}
