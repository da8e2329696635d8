package server

import (
	"net/http"
	"strings"

	"github.com/executord/executord/ipc/protocol"
)

// route is one path of the API. Its handler is called with a caller that the Policy admits.
type route struct {
	path    string
	methods []string
	handle  func(s *Server, w http.ResponseWriter, r *http.Request, who caller)
}

// routes is the whole API.
var routes = []route{
	{"/v1/session", []string{http.MethodGet}, (*Server).openSession},
	{"/v1/execute", []string{http.MethodPost}, (*Server).executeOnce},
	{"/healthz", []string{http.MethodGet, http.MethodHead}, (*Server).health},
	{"/readyz", []string{http.MethodGet, http.MethodHead}, (*Server).ready},
	{"/metrics", []string{http.MethodGet, http.MethodHead}, (*Server).page},
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from := peerOfRequest(r)
	if wait := s.throttle.wait(from.network()); wait > 0 && !from.here() {
		s.refuse(w, r, from, throttled(wait))
		return
	}
	who, no := s.config().Policy.identify(r, from)
	if no != nil {
		s.refuse(w, r, from, no)
		return
	}
	for _, to := range routes {
		if to.path != r.URL.Path {
			continue
		}
		for _, m := range to.methods {
			if m == r.Method {
				to.handle(s, w, r, who)
				return
			}
		}
		w.Header().Set("Allow", strings.Join(to.methods, ", "))
		answerFault(w, http.StatusMethodNotAllowed,
			protocol.Errorf(protocol.UnknownMethod, "%s takes %s", to.path, strings.Join(to.methods, ", ")), nil)
		return
	}
	nothingAt(w, r)
}

func nothingAt(w http.ResponseWriter, r *http.Request) {
	answerError(w, protocol.Errorf(protocol.UnknownMethod, "there is nothing at %.100q", r.URL.Path))
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request, _ caller) {
	answerJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readiness is the body of /readyz.
type readiness struct {
	Ready  bool          `json:"ready"`
	Type   protocol.Type `json:"type,omitempty"`
	Reason string        `json:"reason,omitempty"`
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request, _ caller) {
	if e := s.notReady(); e != nil {
		answerJSON(w, http.StatusServiceUnavailable, readiness{false, e.Type, e.Message})
		return
	}
	answerJSON(w, http.StatusOK, readiness{Ready: true})
}
