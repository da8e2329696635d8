package server

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// throttled is the refusal of a peer that was refused too often. It may be right this time: it is told to come back.
func throttled(wait time.Duration) *refusal {
	e := protocol.Errorf(protocol.Overloaded, "too many requests of this peer were refused")
	e.RetryAfterMs = max(1, wait.Milliseconds())
	return &refusal{Throttled, e}
}

// refuse answers a request that the policy does not take, and tells the operator. A peer that was refused too often gets
// no more than that, and no more than one line in the log.
//
// A peer that many callers share (Policy.Proxies) is heard even then: only who is refused again is told to wait.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, from peer, no *refusal) {
	level := slog.LevelWarn
	if no.reason == Throttled {
		level = slog.LevelDebug
	} else if wait := s.throttle.failed(from.network()); wait > 0 {
		told := no.err.Message
		no, level = throttled(wait), slog.LevelDebug
		no.err.Message += "; this one since " + told // who sets up a proxy has to see it
	} else if s.throttle.wait(from.network()) > 0 {
		s.log.Warn("a peer was refused too often: it has to wait, and its further requests are logged at debug", "peer", from.network())
	}
	s.stats.refused[no.reason].Add(1)
	// Nothing that the caller wrote is logged: it may have a secret where none belongs.
	told := Refusal{Reason: no.reason, Peer: from.name(), Path: knownPath(r.URL.Path)}
	s.log.Log(r.Context(), level, "refused a request", "reason", string(told.Reason), "peer", told.Peer, "path", told.Path)
	s.config().OnRefused(told)
	status := statusOf(no.err.Type)
	switch no.reason {
	case NoToken:
		status = http.StatusUnauthorized
	case Throttled:
		status = http.StatusTooManyRequests
	}
	answerFault(w, status, no.err, nil)
}

// knownPath is path where it is one of the API.
func knownPath(path string) string {
	if routeTo(path) != nil {
		return path
	}
	return ""
}
