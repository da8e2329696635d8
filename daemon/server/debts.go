package server

import "sync"

// debts counts the bytes of outcomes that wait for room in the queues of their sessions, so that those of all sessions
// together stay under a limit. Past it the session that owes its client the most is written off: a client that reads
// loses nothing to those that do not.
type debts struct {
	limit int64

	mu    sync.Mutex
	total int64
	of    map[*session]*debt
}

// debt is what one session's client has not read.
type debt struct {
	bytes      int64
	answers    int
	writtenOff bool // no part of the total any more
}

// owe adds an answer of n bytes to x's debt. It returns the sessions that are written off for it, whose connections are
// to be ended, and what takes the answer off the books again.
func (d *debts) owe(x *session, n int64) (writtenOff []*session, paid func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	own := d.of[x]
	if own == nil {
		own = &debt{}
		d.of[x] = own
	}
	own.answers++
	d.change(own, n)
	for d.total > d.limit {
		x, worst := d.worst()
		d.total -= worst.bytes
		worst.writtenOff = true
		writtenOff = append(writtenOff, x)
	}
	return writtenOff, func() { d.pay(x, own, n) }
}

func (d *debts) pay(x *session, own *debt, n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.change(own, -n)
	if own.answers--; own.answers == 0 {
		delete(d.of, x)
	}
}

// change is called with mu held.
func (d *debts) change(own *debt, n int64) {
	own.bytes += n
	if !own.writtenOff {
		d.total += n
	}
}

// worst is the largest debt of the total. With mu, and only where there is one.
func (d *debts) worst() (of *session, most *debt) {
	for x, own := range d.of {
		if !own.writtenOff && (most == nil || own.bytes > most.bytes) {
			of, most = x, own
		}
	}
	return of, most
}

// sum is the debt of all sessions in bytes.
func (d *debts) sum() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.total
}

// owed is the debt of one session in bytes.
func (d *debts) owed(x *session) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if own := d.of[x]; own != nil {
		return own.bytes
	}
	return 0
}
