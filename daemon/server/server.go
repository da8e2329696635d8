package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// Server serves one Executor. It is an http.Handler.
type Server struct {
	cfg  Config
	exec executor.Executor
	log  *slog.Logger

	stats struct {
		ignored, refused, connections atomic.Int64
	}

	debts   debts
	resting resting

	mu       sync.Mutex
	sessions map[*session]struct{}
	turned   int           // of the sessions, those that were turned out and have not ended yet
	arrivals uint64        // sessions so far
	requests int           // POST /v1/execute under way
	draining bool          // nothing new is begun
	idle     chan struct{} // closed when draining and nothing is left
	halt     context.Context
	haltNow  context.CancelCauseFunc // cancels all work
}

// Stats are counters for telemetry.
type Stats struct {
	Sessions    int   // open now
	Connections int64 // open now, sessions excluded
	Refused     int64 // requests that the Policy refused
	Ignored     int64 // responses of hosts that nobody waited for
}

// New makes a Server of exec, which it does not close.
func New(exec executor.Executor, cfg Config) (*Server, error) {
	if exec == nil {
		return nil, errors.New("cannot serve without an executor")
	}
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, exec: exec, log: cfg.Logger,
		debts:    debts{limit: cfg.TotalOwedBytes, of: map[*session]*debt{}},
		resting:  resting{conns: map[net.Conn]rester{}},
		sessions: map[*session]struct{}{}, idle: make(chan struct{}),
	}
	s.halt, s.haltNow = context.WithCancelCause(context.Background())
	return s, nil
}

// Stats returns the counters as they are now.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Sessions: len(s.sessions), Connections: s.stats.connections.Load(),
		Refused: s.stats.refused.Load(), Ignored: s.stats.ignored.Load(),
	}
}

// Serve answers on the listeners until ctx ends, then drains for Config.DrainGrace and closes them. It returns nil
// after an ordered end, and the reason when a listener fails before.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	if len(listeners) == 0 {
		return errors.New("cannot serve on no listener")
	}
	for _, l := range listeners {
		if err := s.cfg.Policy.Check(l.Addr()); err != nil {
			return err
		}
	}
	hs := s.httpServer()
	failed := make(chan error, len(listeners))
	var serving sync.WaitGroup
	for _, l := range listeners {
		serving.Go(func() {
			if err := hs.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("cannot go on listening on %s: %w", l.Addr(), err)
			}
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.DrainGrace)
	defer cancel()
	_ = s.Drain(grace) // what had to be cancelled has been told so
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancelLast()
	if hs.Shutdown(last) != nil {
		_ = hs.Close()
	}
	serving.Wait()
	return err
}

func (s *Server) httpServer() *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnContext:       s.ConnContext,
		ConnState:         s.watchConnections,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

const tooManyBody = `{"error":{"type":"overloaded","message":"too many connections","retryable":true}}` + "\n"

// tooMany is written to a connection over the limit, before it is closed.
var tooMany = fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"+
	"Content-Type: application/json\r\nRetry-After: 1\r\nContent-Length: %d\r\n\r\n%s", len(tooManyBody), tooManyBody)

// Drain refuses what is new, tells all sessions, and waits until all work has ended and its outcomes were sent. When
// ctx ends before that, what is left is cancelled and ctx's error returned. The server is of no use afterwards.
func (s *Server) Drain(ctx context.Context) error {
	left := time.Duration(0)
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	for _, x := range s.beginDrain() {
		x.drain(left)
	}
	select {
	case <-s.idle:
		return nil
	case <-ctx.Done():
	}
	s.haltNow(protocol.Errorf(protocol.Cancelled, "the service is stopping"))
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-s.idle:
	case <-timer.C:
		s.abortSessions()
		<-s.idle
	}
	return context.Cause(ctx)
}

// beginDrain returns the sessions of the first call.
func (s *Server) beginDrain() (open []*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return nil
	}
	s.draining = true
	for x := range s.sessions {
		open = append(open, x)
	}
	s.checkIdle()
	return open
}

func (s *Server) checkIdle() {
	if s.draining && len(s.sessions) == 0 && s.requests == 0 {
		select {
		case <-s.idle:
		default:
			close(s.idle)
		}
	}
}

func (s *Server) abortSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.sessions {
		x.abort("the service has stopped")
	}
}

func errDraining() *protocol.Error {
	return protocol.Errorf(protocol.Draining, "the service is stopping")
}

// notReady says why /readyz turns callers away; nil when it does not.
func (s *Server) notReady() *protocol.Error {
	s.mu.Lock()
	draining := s.draining
	s.mu.Unlock()
	if draining {
		return errDraining()
	}
	if err := s.cfg.Ready(); err != nil {
		var typed *protocol.Error
		if errors.As(err, &typed) {
			return typed
		}
		return protocol.Errorf(protocol.Maintenance, "%s", err)
	}
	return nil
}
