package pool

import (
	"strconv"
	"strings"
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// keptTombs is how many ends of retained executions are remembered, to say why their handles are unknown.
const keptTombs = 1024

// tomb is the end of a retained execution.
type tomb struct {
	id, session string
	at          time.Time
	why         string
}

// tombs are the last ends. Guarded by Pool.mu.
type tombs struct {
	ring []tomb
	next int
	byID map[string]int // place in ring
}

func (t *tombs) add(x tomb) {
	if t.byID == nil {
		t.byID = map[string]int{}
	}
	if len(t.ring) < keptTombs {
		t.ring = append(t.ring, tomb{})
	} else {
		delete(t.byID, t.ring[t.next].id)
	}
	t.ring[t.next], t.byID[x.id] = x, t.next
	t.next = (t.next + 1) % keptTombs
}

// numberOf splits the id of a handle. A number is written in one way only, and none is 0. That of a retained execution has none.
func numberOf(handle string) (id string, number uint64, ok bool) {
	id = protocol.RetainedOf(handle)
	text := strings.TrimPrefix(handle[len(id):], ".")
	number, err := strconv.ParseUint(text, 10, 64)
	return id, number, err == nil && text[0] != '0'
}

// handle finds what a session retained by one of its handles. With mu.
func (p *Pool) handle(session, handle string) (*retained, uint64, error) {
	id, number, ok := numberOf(handle)
	if !ok {
		return nil, 0, unknownHandle()
	}
	k := p.retained[id]
	if k == nil {
		return nil, 0, p.ended(session, id)
	}
	switch _, live := k.live[number]; {
	case k.session != session || number > k.issued:
		return nil, 0, unknownHandle()
	case !live:
		return nil, 0, protocol.Errorf(protocol.HandleUnknown, "the handle was released")
	}
	return k, number, nil
}

// unknownHandle is the same for a handle that never was and for one of another session.
func unknownHandle() error {
	return protocol.Errorf(protocol.HandleUnknown, "there is no such handle in this session")
}

// ended says why a retained execution of a session is not there any more. With mu.
func (p *Pool) ended(session, id string) error {
	at, is := p.tombs.byID[id]
	if !is || p.tombs.ring[at].session != session {
		return unknownHandle()
	}
	return p.tombs.ring[at].err(p.outside.now())
}

func (t *tomb) err(now time.Time) error {
	ago := now.Sub(t.at)
	if ago < 10*time.Second {
		ago = ago.Round(time.Millisecond)
	} else {
		ago = ago.Round(time.Second)
	}
	return protocol.Errorf(protocol.HandleUnknown, "the retained execution ended %s ago: %s", ago, t.why)
}

// Release implements [executor.Retainer].
func (p *Pool) Release(session string, handles []string) (released int) {
	type named struct {
		id     string
		number uint64 // 0 for the retained execution as a whole, or none
		all    bool
	}
	names := make([]named, len(handles))
	for i, h := range handles {
		id, number, ok := numberOf(h)
		if !ok {
			number = 0
		}
		names[i] = named{id, number, id == h}
	}
	touched := map[*retained][]uint64{}
	p.mu.Lock()
	for _, n := range names {
		k := p.retained[n.id]
		if k == nil || k.session != session {
			continue
		}
		if n.all {
			released += len(k.live)
			k.end(EndReleased, releasedText)
			touched[k] = nil
		} else if _, live := k.live[n.number]; live {
			released++
			delete(k.live, n.number)
			touched[k] = append(touched[k], n.number)
		}
	}
	for k := range touched {
		if k.spent() {
			k.end(EndReleased, releasedText)
		}
	}
	p.mu.Unlock()
	for k, numbers := range touched {
		k.owe(numbers)
		if err := k.part(); err == nil {
			k.flush()
		}
	}
	return released
}

const releasedText = "its handles were released"

// spent tells that nobody can call into it any more: what is under way may still make handles. With Pool.mu.
func (k *retained) spent() bool { return k.calls == 0 && len(k.live) == 0 }

// owe notes handles that the worker has to hear are released.
func (k *retained) owe(numbers []uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.owed = append(k.owed, numbers...)
}
