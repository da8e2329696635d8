package server

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// route is one path of the API. Its handler is called with a caller that the Policy admits; an open one on TCP also with
// one that shows no credential, and so has no identity.
type route struct {
	path    string
	methods []string
	open    bool
	handle  func(s *Server, w http.ResponseWriter, r *http.Request, who caller)
}

// routes is the whole API.
var routes = []route{
	{"/v1/session", []string{http.MethodGet}, false, (*Server).openSession},
	{"/v1/execute", []string{http.MethodPost}, false, (*Server).executeOnce},
	{"/healthz", []string{http.MethodGet, http.MethodHead}, true, (*Server).health},
	{"/readyz", []string{http.MethodGet, http.MethodHead}, true, (*Server).ready},
	{"/metrics", []string{http.MethodGet, http.MethodHead}, false, (*Server).page},
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 { // who announces a body and sends none must not hold up the answer that does not read it
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(discardTimeout))
	}
	from := peerOfRequest(r)
	policy := &s.config().Policy
	to := routeTo(r.URL.Path)
	// A load balancer or a kubelet asks how the service is, and has no credential to show. What callers at the same
	// address did is no reason to leave it without an answer.
	probe := to != nil && to.open && !from.unix && showsNothing(r)
	if wait := s.throttle.wait(from.network()); wait > 0 && !policy.shared(from) && !probe {
		s.refuse(w, r, from, throttled(wait))
		return
	}
	who, no := policy.identify(r, from)
	switch {
	case no != nil && !(probe && (no.reason == NoToken || no.reason == BadCertificate)):
		s.refuse(w, r, from, no)
	case to == nil:
		nothingAt(w, r)
	case !slices.Contains(to.methods, r.Method):
		w.Header().Set("Allow", strings.Join(to.methods, ", "))
		answerFault(w, http.StatusMethodNotAllowed,
			protocol.Errorf(protocol.UnknownMethod, "%s takes %s", to.path, strings.Join(to.methods, ", ")), nil)
	default:
		to.handle(s, w, r, who)
	}
}

// routeTo is nil where there is nothing.
func routeTo(path string) *route {
	for i := range routes {
		if routes[i].path == path {
			return &routes[i]
		}
	}
	return nil
}

// showsNothing tells that there is no credential at all in a request, which is less than a wrong one.
func showsNothing(r *http.Request) bool {
	return len(r.Header["Authorization"]) == 0 && (r.TLS == nil || len(r.TLS.PeerCertificates) == 0)
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

func (s *Server) ready(w http.ResponseWriter, _ *http.Request, who caller) {
	if e := s.notReady(); e != nil {
		no := readiness{Type: e.Type}
		if who.identity != "" {
			no.Reason = e.Message // the operator may have written it
		}
		answerJSON(w, http.StatusServiceUnavailable, no)
		return
	}
	answerJSON(w, http.StatusOK, readiness{Ready: true})
}
