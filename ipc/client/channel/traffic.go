package channel

import "sync/atomic"

// Traffic counts messages of any number of connections, and the bytes of their text. Nil counts nothing. It may be used by
// several goroutines at once.
type Traffic struct{ Received, Sent Flow }

// Flow is one direction.
type Flow struct{ Messages, Bytes atomic.Int64 }

// Count counts one message of n bytes.
func (f *Flow) Count(n int) {
	f.Messages.Add(1)
	f.Bytes.Add(int64(n))
}

func (t *Traffic) received(n int) {
	if t != nil {
		t.Received.Count(n)
	}
}

func (t *Traffic) sent(n int) {
	if t != nil {
		t.Sent.Count(n)
	}
}
