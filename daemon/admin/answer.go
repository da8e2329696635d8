package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// Fault is the body of every answer that is not a success. Its types are those of the protocol.
type Fault struct {
	Error *protocol.Error `json:"error"`
}

// statusError is a typed error with an HTTP status of its own.
type statusError struct {
	status int
	err    *protocol.Error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// missing is the error for an object that there is not.
func missing(field, format string, args ...any) error {
	return &statusError{http.StatusNotFound, protocol.FieldError(field, format, args...)}
}

// conflict is the error for what cannot be done in this state.
func conflict(format string, args ...any) error {
	return &statusError{http.StatusConflict, protocol.Errorf(protocol.InvalidRequest, format, args...)}
}

// statuses are those of error types.
var statuses = map[protocol.Type]int{
	protocol.InvalidParams:  http.StatusBadRequest,
	protocol.InvalidRequest: http.StatusBadRequest,
	protocol.Unauthorized:   http.StatusForbidden,
	protocol.UnknownMethod:  http.StatusNotFound,
	protocol.Overloaded:     http.StatusServiceUnavailable,
	protocol.Maintenance:    http.StatusServiceUnavailable,
	protocol.Draining:       http.StatusServiceUnavailable,
}

func answerError(w http.ResponseWriter, err error) {
	e := protocol.AsError(err)
	status, ok := statuses[e.Type]
	if !ok {
		status = http.StatusInternalServerError
	}
	var own *statusError
	if errors.As(err, &own) {
		status = own.status
	}
	answerJSON(w, status, Fault{e})
}

func answerJSON(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		text, status = []byte(`{"error":{"type":"internal","message":"cannot encode the answer"}}`), http.StatusInternalServerError
	}
	answerText(w, status, jsonText, append(text, '\n'))
}

func answerText(w http.ResponseWriter, status int, kind Text, text []byte) {
	h := w.Header()
	h.Set("Content-Type", string(kind))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // a writer without deadlines is a test's recorder
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// newOf is a pointer to a new value of the type of zero.
func newOf(zero any) any { return reflect.New(reflect.TypeOf(zero)).Interface() }

// ms is d in milliseconds.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// timeOrNil is nil for a time that did not come.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
