package server

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// statusOf is the HTTP status of what could not be run.
func statusOf(t protocol.Type) int {
	switch t {
	case protocol.InvalidParams, protocol.InvalidCode, protocol.InvalidProvider, protocol.ParseError,
		protocol.InvalidRequest, protocol.UnsupportedProtocol:
		return http.StatusBadRequest
	case protocol.Unauthorized:
		return http.StatusForbidden
	case protocol.HandleUnknown, protocol.SessionUnknown, protocol.UnknownMethod:
		return http.StatusNotFound
	case protocol.SessionLimit:
		return http.StatusTooManyRequests
	case protocol.Overloaded, protocol.QueueTimeout, protocol.Draining, protocol.Maintenance:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// fault is the body of every answer that is not a success.
type fault struct {
	Error faultBody `json:"error"`
}

type faultBody struct {
	*protocol.Error
	Retryable bool     `json:"retryable"`
	Supported []string `json:"supported,omitempty"` // with unsupported_protocol
}

// answerError writes e as a JSON body with the status that fits its type.
func answerError(w http.ResponseWriter, e *protocol.Error) { answerFault(w, statusOf(e.Type), e, nil) }

// turnAway is answerError for what is not run.
func (s *Server) turnAway(w http.ResponseWriter, e *protocol.Error) {
	s.stats.notRun.add(e)
	answerError(w, e)
}

func answerFault(w http.ResponseWriter, status int, e *protocol.Error, supported []string) {
	if e.RetryAfterMs > 0 {
		seconds := (e.RetryAfterMs + 999) / 1000
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	if e.Type == protocol.Unauthorized && status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	answerJSON(w, status, fault{faultBody{e, e.Retryable(), supported}})
}

// answerJSON writes a small answer.
func answerJSON(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		text = []byte(`{"error":{"type":"internal","message":"cannot encode the answer"}}`)
		status = http.StatusInternalServerError
	}
	answerText(w, status, append(text, '\n'), headerTimeout)
}

// answerText writes JSON text of any size to a client that may be slow, as long as it keeps taking some.
func answerText(w http.ResponseWriter, status int, text []byte, stall time.Duration) {
	const step = 64 << 10
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	control := http.NewResponseController(w)
	for len(text) > 0 {
		n := min(len(text), step)
		_ = control.SetWriteDeadline(time.Now().Add(stall)) // a writer without deadlines is a test's recorder
		if _, err := w.Write(text[:n]); err != nil {
			return
		}
		text = text[n:]
	}
	_ = control.Flush()
	_ = control.SetWriteDeadline(time.Time{}) // the connection may serve another request
}
