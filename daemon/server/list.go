package server

import (
	"cmp"
	"slices"
	"time"
)

// SessionInfo is one session as the operator sees it.
type SessionInfo struct {
	ID         string
	Identity   string // of its caller
	State      SessionState
	Since      time.Time // it was begun
	Executions int       // under way
	Retained   int       // executions whose isolates stay for it
	OwedBytes  int64     // answers that its client has not read
}

// SessionState is where a session is.
type SessionState string

// The states.
const (
	SessionOpening  SessionState = "opening" // session.open has not been answered
	SessionOpen     SessionState = "open"
	SessionAway     SessionState = "away"     // its connection was lost, and its client may resume it
	SessionDraining SessionState = "draining" // it takes nothing new and ends with what it has
)

// Sessions lists the sessions, oldest first.
func (s *Server) Sessions() []SessionInfo {
	s.mu.Lock()
	open := make([]*session, 0, len(s.sessions))
	for x := range s.sessions {
		open = append(open, x)
	}
	slices.SortFunc(open, func(a, b *session) int { return cmp.Compare(a.arrival, b.arrival) })
	s.mu.Unlock()
	list := make([]SessionInfo, len(open))
	for i, x := range open {
		list[i] = x.info()
	}
	return list
}

func (x *session) info() SessionInfo {
	i := SessionInfo{ID: x.id, Identity: x.identity, State: SessionOpening, Since: x.came, OwedBytes: x.srv.debts.owed(x), Retained: x.srv.retained(x.id)}
	if x.opened.Load() {
		i.State = SessionOpen
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	i.Executions = len(x.running)
	if x.parted.Load() {
		i.State = SessionAway
	}
	if x.draining {
		i.State = SessionDraining
	}
	return i
}
