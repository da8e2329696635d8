package server

import (
	"cmp"
	"crypto/tls"
	"iter"
	"net"
	"net/http"
	"sync"
	"time"
)

// turnOut chooses who makes way when there is no room left: of the peer that has the most of items, the one that has
// been waiting the longest. A peer that fills the place with what it does not use so takes it from itself. False when
// there are no items.
func turnOut[T any](items iter.Seq[T], peer func(T) string, since func(T) uint64) (out T, ok bool) {
	oldest, count := map[string]T{}, map[string]int{}
	for item := range items {
		p := peer(item)
		if count[p]++; count[p] == 1 || since(item) < since(oldest[p]) {
			oldest[p] = item
		}
	}
	most := ""
	for p, item := range oldest {
		if !ok || cmp.Or(cmp.Compare(count[p], count[most]), cmp.Compare(since(oldest[most]), since(item))) > 0 {
			out, most, ok = item, p, true
		}
	}
	return out, ok
}

// resting are the connections that the server waits for: for a first request, or for the next.
type resting struct {
	mu    sync.Mutex
	clock uint64
	conns map[net.Conn]rester
}

type rester struct {
	conn  net.Conn
	peer  string
	since uint64
}

func (r *resting) add(c net.Conn, peer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock++
	r.conns[c] = rester{c, peer, r.clock}
}

func (r *resting) remove(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}

// closeOne makes room for a connection; false when none rests.
func (r *resting) closeOne() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	values := func(yield func(rester) bool) {
		for _, one := range r.conns {
			if !yield(one) {
				return
			}
		}
	}
	out, ok := turnOut(values, func(o rester) string { return o.peer }, func(o rester) uint64 { return o.since })
	if ok {
		delete(r.conns, out.conn)
		_ = out.conn.Close()
	}
	return ok
}

// watchConnections is the http.Server's ConnState. Over the limit a connection that rests makes way for a new one; where
// all are busy the new one is refused.
func (s *Server) watchConnections(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if s.stats.connections.Add(1) > int64(s.config().MaxConnections) && !s.resting.closeOne() {
			if _, coded := c.(*tls.Conn); !coded { // its handshake would hold up all who come
				_ = c.SetWriteDeadline(time.Now().Add(time.Second))
				_, _ = c.Write(tooMany)
			}
			_ = c.Close()
			return
		}
		s.resting.add(c, peerOf(c).name())
	case http.StateIdle:
		s.resting.add(c, peerOf(c).name())
	case http.StateActive:
		s.resting.remove(c)
	case http.StateClosed, http.StateHijacked:
		s.resting.remove(c)
		s.stats.connections.Add(-1)
	}
}
