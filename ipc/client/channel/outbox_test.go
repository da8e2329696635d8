package channel

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
)

// looseConn is a Conn that writes nothing by itself.
func looseConn() *Conn {
	c := &Conn{stream: &stream{}, wake: make(chan struct{}, 1)}
	c.out.Store(newOutbox(0, c))
	return c
}

func looseOutbox(bound int64) (*Outbox, *Conn) {
	c := looseConn()
	o := newOutbox(bound, c)
	c.out.Store(o)
	return o, c
}

// FuzzOutbox plays a session with connections that break anywhere: whatever happens, the peer gets every numbered
// message once and in order, and what it has acknowledged is kept no more.
func FuzzOutbox(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 1, 2, 3, 0, 1, 1, 1, 2, 4, 4})
	f.Add([]byte{0, 0, 0, 1, 3, 3, 1, 1, 2, 5, 1, 1, 6})
	f.Add(append(bytes.Repeat([]byte{248, 2}, 17), 4)) // a MiB, acknowledged by the next connection
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 500 {
			return
		}
		o, c := looseOutbox(64)
		kept := int64(0)
		o.Watch(func(change int64) { kept += change })
		o.Begin([]byte("hello"))
		if m, ok := o.pop(c); !ok || string(m[0]) != "hello" {
			t.Fatalf("first came %q", m)
		} else {
			o.written(c, m)
		}
		var pushed, received, acked uint64 // by this end, by the peer, by this end again
		peer := func(m message) {
			if n := binary.BigEndian.Uint64(m[0]); n != received+1 {
				t.Fatalf("the peer got message %d after %d", n, received)
			}
			received++
		}
		for i, op := range ops {
			switch op % 8 {
			case 0, 1: // a message, which may find no room
				m := binary.BigEndian.AppendUint64(nil, pushed+1)
				if op >= 128 {
					m = append(m, make([]byte, int(op)<<8)...)
				}
				if o.TrySend(m) {
					pushed++
				}
			case 2, 3: // one arrives
				if m, ok := o.pop(c); ok {
					peer(m)
					o.written(c, m)
				}
			case 4: // one is written, and lost with the connection, which is made again
				m, ok := o.pop(c)
				old := c
				c = looseConn()
				if err := o.MoveTo(c, received, fmt.Append(nil, "again", i)); err != nil {
					t.Fatal(err)
				}
				if ok {
					o.written(old, m)
				}
				if m, ok := o.pop(old); ok {
					t.Fatalf("the old connection got %q", m)
				}
				acked = received
				if m, ok := o.pop(c); !ok || string(m[0]) != fmt.Sprint("again", i) {
					t.Fatalf("first came %q", m)
				} else {
					o.written(c, m)
				}
			case 5:
				if err := o.Ack(received); err != nil {
					t.Fatal(err)
				}
				acked = received
			case 6: // what cannot be
				if err := o.Ack(pushed + 1 + uint64(op)); !errors.Is(err, ErrAck) {
					t.Fatalf("acknowledged what was not sent: %v", err)
				}
				if err := o.MoveTo(looseConn(), pushed+1); !errors.Is(err, ErrAck) {
					t.Fatalf("resumed with what was not sent: %v", err)
				}
				if acked > 0 {
					if err := o.MoveTo(looseConn(), acked-1); !errors.Is(err, ErrAck) {
						t.Fatalf("resumed with what is kept no more: %v", err)
					}
				}
			case 7: // all arrive
				for m, ok := o.pop(c); ok; m, ok = o.pop(c) {
					peer(m)
					o.written(c, m)
				}
			}
			if left := uint64(len(o.msgs) - o.head); left != pushed-acked {
				t.Fatalf("%d messages are kept, of %d sent and %d acknowledged", left, pushed, acked)
			}
			sum, unsent := int64(0), int64(0)
			for i, e := range o.msgs[o.head:] {
				sum += int64(e.size())
				if o.head+i >= o.next {
					unsent += int64(e.size())
				}
			}
			if sum != o.kept || unsent != o.bytes {
				t.Fatalf("%d bytes are kept and %d wait; it says %d and %d", sum, unsent, o.kept, o.bytes)
			}
			if kept != o.told || o.kept-kept >= watchStep || kept-o.kept >= watchStep || o.kept < watchFew && kept >= watchFew {
				t.Fatalf("%d bytes are kept, the watcher heard of %d", o.kept, kept)
			}
		}
		for m, ok := o.pop(c); ok; m, ok = o.pop(c) {
			peer(m)
		}
		if received != pushed {
			t.Fatalf("%d of %d messages arrived", received, pushed)
		}
		o.Close()
		if kept != 0 || o.TrySend(nil) || !errors.Is(o.MoveTo(looseConn(), received), ErrClosed) {
			t.Fatalf("%d bytes are kept after the end", kept)
		}
	})
}

// TestMoveToLetsWaitersIn: the peer may have all of a message whose writer has not said so yet. What waits for its room leaves
// by the next connection.
func TestMoveToLetsWaitersIn(t *testing.T) {
	o, old := looseOutbox(64)
	o.Begin()
	if !o.TrySend(make([]byte, 64)) {
		t.Fatal("there is no room for the first message")
	}
	first, ok := o.pop(old)
	if !ok {
		t.Fatal("the first message is not there")
	}
	w, ok := o.push(message{[]byte("next")}, true, true)
	if w == nil || !ok {
		t.Fatal("the next message does not wait for room")
	}
	c := looseConn()
	if err := o.MoveTo(c, 1); err != nil {
		t.Fatal(err)
	}
	o.written(old, first)
	select {
	case <-w.settled:
	default:
		t.Error("its sender still waits")
	}
	if m, ok := o.pop(c); !ok || string(m[0]) != "next" {
		t.Errorf("then came %q", m)
	}
}

// TestWatcherHearsOfWhatIsFreed: whatever has fewer bytes kept tells the watcher, and only of those, since its caller may
// hold locks.
func TestWatcherHearsOfWhatIsFreed(t *testing.T) {
	for name, free := range map[string]func(o *Outbox){
		"acknowledged": func(o *Outbox) {
			if err := o.Ack(1); err != nil {
				t.Error(err)
			}
		},
		"resumed": func(o *Outbox) {
			if err := o.MoveTo(looseConn(), 1); err != nil {
				t.Error(err)
			}
		},
	} {
		o, c := looseOutbox(64)
		kept := int64(0)
		o.Watch(func(change int64) { kept += change })
		o.Begin()
		o.TrySend(make([]byte, watchStep))
		m, _ := o.pop(c)
		o.written(c, m)
		if kept != watchStep {
			t.Fatalf("%s: the watcher heard of %d bytes", name, kept)
		}
		if free(o); kept != 0 {
			t.Errorf("%s: nothing is kept, the watcher heard of %d bytes", name, kept)
		}
	}

	o, c := looseOutbox(4 * watchStep)
	kept, told := int64(0), 0
	o.Watch(func(change int64) { kept += change; told++ })
	o.Begin()
	for _, n := range []int{watchStep / 2, watchStep / 2, watchStep / 2, watchStep / 2, 1000, 1} {
		o.TrySend(make([]byte, n))
		m, _ := o.pop(c)
		o.written(c, m)
	}
	for received := range uint64(6) {
		if err := o.Ack(received); err != nil {
			t.Error(err)
		}
		if received == 4 && kept != 1001 {
			t.Errorf("hardly any of two MiB is left, the watcher heard of %d bytes", kept)
		}
	}
	if told != 4 {
		t.Errorf("the watcher was told %d times of two MiB that came and went", told)
	}

	o, _ = looseOutbox(64)
	kept = 0
	o.Watch(func(change int64) { kept += change })
	o.Begin()
	o.TrySend(make([]byte, 64))
	given, giveUp := context.WithCancel(t.Context())
	o.Watch(func(change int64) { kept += change; giveUp() })
	if err := o.Send(given, make([]byte, watchStep)); !errors.Is(err, context.Canceled) {
		t.Fatalf("sending without room: %v", err)
	}
	if kept != 64 {
		t.Errorf("given up: 64 bytes are kept, the watcher heard of %d", kept)
	}

	o.mu.Lock()
	o.kept += 2 * watchStep // by somebody who is about to tell it
	o.ease()
	if kept != 64 {
		t.Errorf("one that freed nothing told of %d bytes", kept-64)
	}
}
