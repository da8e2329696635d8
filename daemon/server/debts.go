package server

import (
	"sync"

	"github.com/executord/executord/ipc/client/channel"
)

// debts counts the bytes that sessions hold for their clients: outcomes that wait for room in the queue, and messages
// that may be resumed and are not acknowledged. Those of all sessions together stay under a limit; past it the session
// that owes its client the most is written off, so that a client that reads loses nothing to those that do not. Sessions
// without a client have limits of their own.
type debts struct {
	limit int64
	away  int64 // of all sessions without a client; half of it for those of one identity

	mu    sync.Mutex
	total int64
	of    map[*session]*debt
}

// debt is what one session's client has not read.
type debt struct {
	bytes      int64
	kept       int64 // of the bytes, those of messages that are not acknowledged
	answers    int
	writtenOff bool // no part of the total any more
}

// owe adds an answer of n bytes to x's debt. It returns the sessions that are written off for it, whose connections are
// to be ended, and what takes the answer off the books again.
func (d *debts) owe(x *session, n int64) (writtenOff []*session, paid func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	own := d.debt(x)
	own.answers++
	d.change(own, n)
	return d.writeOff(), func() { d.pay(x, own, n) }
}

func (d *debts) pay(x *session, own *debt, n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	own.answers--
	d.change(own, -n)
	d.settle(x, own)
}

// keep adds to what is kept for x until its client acknowledges it. It returns what owe does.
func (d *debts) keep(x *session, change int64) (writtenOff []*session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	own := d.debt(x)
	own.kept += change
	d.change(own, change)
	d.settle(x, own)
	if change <= 0 {
		return nil // what is over the limits all the same is found by check
	}
	return d.writeOff()
}

// check returns what owe does, after sessions lost their clients.
func (d *debts) check() (writtenOff []*session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writeOff()
}

// What follows, up to worst, is called with mu held.

func (d *debts) debt(x *session) *debt {
	own := d.of[x]
	if own == nil {
		own = &debt{}
		d.of[x] = own
	}
	return own
}

func (d *debts) settle(x *session, own *debt) {
	if own.answers == 0 && own.kept == 0 {
		delete(d.of, x)
	}
}

func (d *debts) change(own *debt, n int64) {
	own.bytes += n
	if !own.writtenOff {
		d.total += n
	}
}

func (d *debts) writeOff() (writtenOff []*session) {
	for {
		x, own := d.excess()
		if x == nil {
			return writtenOff
		}
		d.total -= own.bytes
		own.writtenOff = true
		writtenOff = append(writtenOff, x)
	}
}

// excess is the session to write off while a limit is passed, nil when none is.
func (d *debts) excess() (*session, *debt) {
	if d.total > d.limit {
		return d.worst(func(*session) bool { return true })
	}
	all, of := int64(0), map[string]int64{}
	for x, own := range d.of {
		if x.parted.Load() && !own.writtenOff {
			all += own.bytes
			of[x.identity] += own.bytes
		}
	}
	for identity, sum := range of {
		if sum > d.away/2 {
			return d.worst(func(x *session) bool { return x.parted.Load() && x.identity == identity })
		}
	}
	if all > d.away {
		return d.worst(func(x *session) bool { return x.parted.Load() })
	}
	return nil, nil
}

// worst is the largest debt of those that count and that are meant.
func (d *debts) worst(meant func(*session) bool) (of *session, most *debt) {
	for x, own := range d.of {
		if !own.writtenOff && meant(x) && (most == nil || own.bytes > most.bytes) {
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

const unread = "the client leaves too much unread"

// writeOff ends sessions that were written off.
func writeOff(list []*session) {
	for _, debtor := range list {
		debtor.log.Warn("session ended: its client leaves too much unread")
		debtor.kill(channel.CloseUnread, unread)
	}
}
