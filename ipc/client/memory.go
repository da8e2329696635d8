package client

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// memory is what a client knows of executions that were retained for it. Its lock is taken under all others.
type memory struct {
	mu    sync.Mutex
	of    map[string]*retained
	ends  map[string]end
	order []string // ids in ends, those that go first at the front
}

// end is when and why what was retained has ended.
type end struct {
	at  time.Time
	why string
}

// maxEnds bounds the ends that are remembered.
const maxEnds = 1024

func (m *memory) add(k *retained) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of, m.ends = map[string]*retained{}, map[string]end{}
	}
	m.of[k.id] = k
}

func (m *memory) bury(id, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, id)
	if _, again := m.ends[id]; !again {
		m.order = append(m.order, id)
	}
	m.ends[id] = end{time.Now(), why}
	if len(m.order) > maxEnds {
		delete(m.ends, m.order[0])
		m.order = m.order[1:]
	}
}

// find is nil where nothing is retained by that name.
func (m *memory) find(id string) *retained {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of[id]
}

func (m *memory) live() []*retained {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.of))
}

// unknown is the error of handles that are not there any more, or never were.
func (m *memory) unknown(id string) *protocol.Error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ended := m.ends[id]; ended {
		return protocol.Errorf(protocol.HandleUnknown, "the handle is not there since %s: %s", e.at.UTC().Format(time.RFC3339), e.why)
	}
	return protocol.Errorf(protocol.HandleUnknown, "there is no such handle in a session of this client")
}
