package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/executord/executord/daemon/events"
	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/daemon/settings"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// Bounds of the HTTP layer.
const (
	maxHeaderBytes = 16 << 10
	maxBodyBytes   = 64 << 10
	maxConnections = 128
	maxStreams     = 32 // of events at once
	readTimeout    = 15 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	closeGrace     = 2 * time.Second
	maxReasonBytes = 512
)

// hostName is the Host header of Client.
const hostName = "executord"

// Pool is what the operator sees and does of a pool.Pool.
type Pool interface {
	Stats() pool.Stats
	Workers() []pool.WorkerInfo
	Retire(name string) bool
	Executions() []pool.ExecutionInfo
	Execution(id string) []pool.ExecutionInfo
	CancelExecution(id, reason string) bool
}

// Service is the service as a whole. An error says in words why something cannot be done now.
type Service interface {
	State() State
	Maintenance() Maintenance
	EnterMaintenance(who string, m EnterMaintenance) error
	LeaveMaintenance(who string) error
	Reload(who string) (Reload, error)
}

// Config of an App. Every field but Started, Metrics and Logger is needed.
type Config struct {
	Version  string    // of the service
	Started  time.Time // the service; by default when New is called
	Pool     Pool
	Service  Service
	Sessions func() []Session
	Settings func() []settings.Setting
	Events   *events.Ring
	LogLevel *slog.LevelVar
	Metrics  http.Handler // nil where nobody measures
	// Dial connects to the protocol port as a caller would, and says by which address.
	Dial   func(ctx context.Context) (e executor.Executor, address string, err error)
	Access Access
	Logger *slog.Logger // nil discards
}

// App is the admin app.
type App struct {
	cfg      Config
	log      *slog.Logger
	mux      *http.ServeMux
	checking atomic.Bool
	streams  atomic.Int64
	open     atomic.Int64
	stopping chan struct{} // closed when streams have to end
}

// New makes an App. It starts nothing.
func New(c Config) (*App, error) {
	if c.Pool == nil || c.Service == nil || c.Sessions == nil || c.Settings == nil || c.Events == nil || c.LogLevel == nil || c.Dial == nil {
		return nil, errors.New("cannot make admin app: a part of the service is missing")
	}
	if c.Started.IsZero() {
		c.Started = time.Now()
	}
	a := &App{cfg: c, log: c.Logger, mux: http.NewServeMux(), stopping: make(chan struct{})}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	byPath := map[string][]Route{}
	for _, to := range routes {
		byPath[to.Path] = append(byPath[to.Path], to)
	}
	for path, list := range byPath {
		a.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { a.dispatch(w, r, list) })
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { a.dispatch(w, r, nil) })
	return a, nil
}

// Serve answers on l until ctx ends, and closes it. It returns nil after an ordered end. It may be called once.
func (a *App) Serve(ctx context.Context, l net.Listener) error {
	hs := &http.Server{
		Handler: a.mux, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ConnContext: a.meet, ConnState: a.count,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- hs.Serve(l) }()
	select {
	case err := <-failed:
		close(a.stopping)
		_ = hs.Close()
		return fmt.Errorf("cannot go on listening on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	close(a.stopping)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	if hs.Shutdown(last) != nil {
		_ = hs.Close()
	}
	<-failed
	return nil
}

// count closes connections over the limit.
func (a *App) count(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if a.open.Add(1) > maxConnections {
			_ = c.Close()
		}
	case http.StateClosed, http.StateHijacked:
		a.open.Add(-1)
	}
}

// call is one request.
type call struct {
	*http.Request
	who caller
	in  any // the decoded body, a pointer to a value of the route's In
}

// body is the decoded body of a call whose route has a T as In.
func body[T any](c *call) T { return *c.in.(*T) }

// decode reads the body, which may be absent, into v.
func (c *call) decode(w http.ResponseWriter, v any) error {
	text, err := io.ReadAll(http.MaxBytesReader(w, c.Body, maxBodyBytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &statusError{http.StatusRequestEntityTooLarge, protocol.FieldError("", "the body has more than %d bytes", maxBodyBytes)}
	case err != nil:
		return &statusError{http.StatusRequestTimeout, protocol.Errorf(protocol.InvalidRequest, "the body did not come: %s", err)}
	case len(text) == 0:
		return nil
	}
	if kind, _, _ := strings.Cut(c.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "application/json" {
		return &statusError{http.StatusUnsupportedMediaType, protocol.Errorf(protocol.InvalidRequest, "the body must be of type application/json")}
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return protocol.FieldError("", "the body: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if d.More() {
		return protocol.FieldError("", "the body has more than one value")
	}
	return nil
}

// dispatch finds the route of a path and answers.
func (a *App) dispatch(w http.ResponseWriter, r *http.Request, list []Route) {
	at := slices.IndexFunc(list, func(to Route) bool { return to.Method == r.Method })
	need := Read
	if at >= 0 {
		need = list[at].May
	}
	who, refusal := admit(r, need)
	switch {
	case refusal != nil:
		a.log.Warn("admin request refused", "reason", refusal.Message, "who", who.name, "method", r.Method, "path", r.Pattern)
		a.cfg.Events.Publish(events.Event{Kind: events.AuthFailed, Who: who.name, Reason: refusal.Message})
		answerError(w, refusal)
	case list == nil:
		answerError(w, protocol.Errorf(protocol.UnknownMethod, "there is nothing at %.100q", r.URL.Path))
	case at < 0:
		var allowed []string
		for _, to := range list {
			allowed = append(allowed, to.Method)
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		answerError(w, &statusError{http.StatusMethodNotAllowed, protocol.Errorf(protocol.UnknownMethod, "%s takes %s", list[0].Path, strings.Join(allowed, ", "))})
	default:
		a.handle(w, &call{Request: r, who: who}, list[at])
	}
}

func (a *App) handle(w http.ResponseWriter, c *call, to Route) {
	if to.In != nil {
		c.in = newOf(to.In)
		if err := c.decode(w, c.in); err != nil {
			answerError(w, err)
			return
		}
	}
	out, err := a.guarded(c, to)
	switch out := out.(type) {
	case nil:
		answerError(w, err)
	case http.Handler:
		out.ServeHTTP(w, c.Request)
	default:
		answerJSON(w, http.StatusOK, out)
	}
	if to.May == Operate {
		level, words := slog.LevelInfo, "done"
		if err != nil {
			level, words = slog.LevelWarn, err.Error()
		}
		a.log.Log(c.Context(), level, "admin request", "who", c.who.name, "method", to.Method, "path", c.URL.Path, "result", words)
	}
}

// guarded keeps a fault of ours from ending more than the request.
func (a *App) guarded(c *call, to Route) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("an admin request panicked", "path", to.Path, "panic", p, "stack", string(debug.Stack()))
			out, err = nil, protocol.Errorf(protocol.Internal, "the service failed at this request")
		}
	}()
	if out, err = to.handle(a, c); err != nil {
		out = nil
	}
	return out, err
}
