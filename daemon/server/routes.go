package server

import (
	"net/http"
	"strings"

	"github.com/executord/executord/ipc/protocol"
)

// route is one path of the API. Its handler is called with the identity of a caller that the Policy admits.
type route struct {
	path    string
	methods []string
	handle  func(s *Server, w http.ResponseWriter, r *http.Request, identity string)
}

// routes is the whole API.
var routes = []route{
	{"/v1/session", []string{http.MethodGet}, (*Server).openSession},
	{"/v1/execute", []string{http.MethodPost}, (*Server).executeOnce},
	{"/healthz", []string{http.MethodGet, http.MethodHead}, (*Server).health},
	{"/readyz", []string{http.MethodGet, http.MethodHead}, (*Server).ready},
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	caller := callerOf(r)
	identity, refusal := s.cfg.Policy.identify(r, caller)
	if refusal != nil {
		s.refuse(w, r, caller, refusal)
		return
	}
	for _, to := range routes {
		if to.path != r.URL.Path {
			continue
		}
		for _, m := range to.methods {
			if m == r.Method {
				to.handle(s, w, r, identity)
				return
			}
		}
		w.Header().Set("Allow", strings.Join(to.methods, ", "))
		answerFault(w, http.StatusMethodNotAllowed,
			protocol.Errorf(protocol.UnknownMethod, "%s takes %s", to.path, strings.Join(to.methods, ", ")), nil)
		return
	}
	answerError(w, protocol.Errorf(protocol.UnknownMethod, "there is nothing at %.100q", r.URL.Path))
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, caller peer, refusal *protocol.Error) {
	s.stats.refused.Add(1)
	s.log.Warn("refused a request", "reason", refusal.Message, "remote", r.RemoteAddr, "path", r.URL.Path)
	status := statusOf(refusal.Type)
	if len(s.cfg.Policy.Tokens) > 0 && !caller.unix && r.Header.Get("Authorization") == "" {
		status = http.StatusUnauthorized
	}
	answerFault(w, status, refusal, nil)
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request, _ string) {
	answerJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readiness is the body of /readyz.
type readiness struct {
	Ready  bool          `json:"ready"`
	Type   protocol.Type `json:"type,omitempty"`
	Reason string        `json:"reason,omitempty"`
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request, _ string) {
	if e := s.notReady(); e != nil {
		answerJSON(w, http.StatusServiceUnavailable, readiness{false, e.Type, e.Message})
		return
	}
	answerJSON(w, http.StatusOK, readiness{Ready: true})
}
