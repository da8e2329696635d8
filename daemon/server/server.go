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

	"github.com/executord/executord/ipc/client/channel"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/quiet"
)

// Server serves one Executor. It is an http.Handler.
type Server struct {
	cfg      Config                 // as at first; what Reconfigure changes is in current
	current  atomic.Pointer[Config] // see config
	exec     executor.Executor
	retainer executor.Retainer // exec, where it is one
	log      *slog.Logger

	stats struct {
		ignored, connections atomic.Int64
		began                atomic.Uint64            // sessions
		refused              map[Reason]*atomic.Int64 // the map itself never changes
		notRun               tally
	}

	traffic    channel.Traffic
	debts      debts
	resting    resting
	throttle   *throttle
	sessionsOf quota // identity
	runsOf     quota // identity

	mu        sync.Mutex
	sessions  map[*session]struct{}
	turned    int           // of the sessions, those that were turned out and have not ended yet
	away      int           // of the sessions, those that wait for their clients
	guests    int           // of the sessions, those that may only resume another
	arrivals  uint64        // the order of sessions that came, and of those that lost their connection
	requests  int           // POST /v1/execute under way
	draining  bool          // nothing new is begun
	addresses []net.Addr    // that are listened on
	idle      chan struct{} // closed when draining and nothing is left
	halt      context.Context
	haltNow   context.CancelCauseFunc // cancels all work
}

// Stats are counters for telemetry.
type Stats struct {
	Sessions    int    // open now
	Away        int    // sessions that wait for their clients to resume them
	Connections int64  // open now, sessions excluded
	Ignored     int64  // responses of hosts that nobody waited for
	Began       uint64 // sessions, in all
	OwedBytes   int64  // of outcomes that wait for room in the queues of their sessions, and of what is kept for clients that can resume

	Refused map[Reason]int64        // requests that the Policy refused; has every Reason
	NotRun  map[protocol.Type]int64 // requests that were answered with an error; has every Type that says why nothing ran
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
		debts:    debts{limit: cfg.TotalOwedBytes, away: cfg.ResumeBytes, of: map[*session]*debt{}},
		resting:  resting{conns: map[net.Conn]rester{}},
		throttle: newThrottle(time.Now),
		sessions: map[*session]struct{}{}, idle: make(chan struct{}),
	}
	s.retainer, _ = exec.(executor.Retainer)
	s.cfg.traffic = &s.traffic
	current := s.cfg
	s.current.Store(&current)
	s.stats.notRun = newTally()
	s.stats.refused = map[Reason]*atomic.Int64{}
	for _, r := range Reasons() {
		s.stats.refused[r] = &atomic.Int64{}
	}
	s.halt, s.haltNow = context.WithCancelCause(context.Background())
	if err := s.measure(cfg.Meter); err != nil {
		return nil, fmt.Errorf("cannot measure: %w", err)
	}
	return s, nil
}

// config is the configuration of now.
func (s *Server) config() *Config { return s.current.Load() }

// Stats returns the counters as they are now.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := Stats{
		Sessions: s.open(), Away: s.away, Connections: s.stats.connections.Load(), Ignored: s.stats.ignored.Load(),
		Began: s.stats.began.Load(), OwedBytes: s.debts.sum(), Refused: map[Reason]int64{}, NotRun: map[protocol.Type]int64{},
	}
	for typ, n := range s.stats.notRun {
		now.NotRun[typ] = n.Load()
	}
	for reason, n := range s.stats.refused {
		now.Refused[reason] = n.Load()
	}
	return now
}

// Serve answers on the listeners until ctx ends, then drains for Config.DrainGrace and closes them. It returns nil
// after an ordered end, and the reason when a listener fails before.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	front, err := s.Start(listeners...)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case err = <-front.Failed():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.DrainGrace)
	defer cancel()
	_ = s.Drain(grace) // what had to be cancelled has been told so
	front.Close()
	return err
}

// Front is a Server's end of its listeners.
type Front struct {
	http    *http.Server
	taps    []*tap
	failed  chan error
	serving sync.WaitGroup
}

// Start begins to answer on the listeners, which it takes over: Front.Close closes them.
func (s *Server) Start(listeners ...net.Listener) (*Front, error) {
	if len(listeners) == 0 {
		return nil, errors.New("cannot serve on no listener")
	}
	var addresses []net.Addr
	for _, l := range listeners {
		addresses = append(addresses, l.Addr())
	}
	if err := s.listenOn(addresses); err != nil {
		return nil, err
	}
	f := &Front{http: s.httpServer(), failed: make(chan error, len(listeners))}
	for _, l := range listeners {
		t := &tap{Listener: l}
		f.taps = append(f.taps, t)
		f.serving.Go(func() {
			if err := f.http.Serve(s.secure(t)); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, errLeft) {
				f.failed <- fmt.Errorf("cannot go on listening on %s: %w", l.Addr(), err)
			}
		})
	}
	return f, nil
}

// listenOn remembers addresses, which the Policy has to be strict enough for from now on.
func (s *Server) listenOn(addresses []net.Addr) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.config().Policy.Check(addresses...); err != nil {
		return err
	}
	s.addresses = append(s.addresses, addresses...)
	return nil
}

// Failed has the reason when a listener fails.
func (f *Front) Failed() <-chan error { return f.failed }

// Leave takes no further connection from the listeners, and leaves those that wait there to whoever else holds them. It
// returns when all that were taken are known, so that Close waits for them. Listeners other than net's own go on.
func (f *Front) Leave() {
	left := true
	for _, t := range f.taps {
		left = t.leave() && left
	}
	if left {
		f.serving.Wait()
	}
}

// errLeft ends the taking of connections.
var errLeft = errors.New("the listener was left")

// tap is a listener that can be left open and untouched.
type tap struct {
	net.Listener
	left atomic.Bool
}

func (t *tap) Accept() (net.Conn, error) {
	c, err := t.Listener.Accept()
	if err != nil && t.left.Load() {
		return nil, errLeft
	}
	if err != nil {
		return nil, err
	}
	return quiet.Of(c), nil
}

func (t *tap) leave() bool {
	l, ok := t.Listener.(interface{ SetDeadline(time.Time) error })
	if !ok {
		return false
	}
	t.left.Store(true)
	return l.SetDeadline(time.Unix(1, 0)) == nil
}

// Close closes the listeners, gives connections a moment to take their last answer, and closes those too. Sessions are
// Server.Drain's, which comes before.
func (f *Front) Close() {
	last, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	if f.http.Shutdown(last) != nil {
		_ = f.http.Close()
	}
	f.serving.Wait()
}

// Abort closes the listeners and all connections that are no sessions at once.
func (f *Front) Abort() {
	_ = f.http.Close()
	f.serving.Wait()
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

// drainer is an Executor that holds requests which have not begun: asked to drain, it refuses those.
type drainer interface{ Drain() }

// Drain refuses what is new, tells all sessions, has the Executor refuse what waits if it can (with a method Drain), and
// waits until all work has ended and its outcomes were sent. When ctx ends before that, what is left is cancelled, and
// ctx's error returned once it has ended or a few seconds later. The server is of no use afterwards.
func (s *Server) Drain(ctx context.Context) error {
	left := time.Duration(0)
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	for _, x := range s.beginDrain() {
		x.drain(left, stopping)
	}
	if d, ok := s.exec.(drainer); ok {
		d.Drain()
	}
	select {
	case <-s.idle:
		return nil
	case <-ctx.Done():
	}
	s.haltNow(errHalted)
	s.endAway()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-s.idle:
	case <-timer.C:
		s.abortSessions()
		timer.Reset(closeGrace)
		select {
		case <-s.idle:
		case <-timer.C: // single requests of clients that take or give little at a time; Front.Close cuts them
		}
	}
	return context.Cause(ctx)
}

// Abort cancels all work and ends all sessions at once, without waiting for anything. Outcomes are lost.
func (s *Server) Abort() {
	s.beginDrain()
	s.haltNow(protocol.Errorf(protocol.Cancelled, "the service has stopped"))
	s.abortSessions()
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

// endAway ends the sessions that wait for their clients.
func (s *Server) endAway() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.sessions {
		if x.parted.Load() {
			x.abort(stopping)
		}
	}
}

const stopping = "the service is stopping"

var errHalted = protocol.Errorf(protocol.Cancelled, stopping)

func errDraining() *protocol.Error {
	return protocol.Errorf(protocol.Draining, stopping)
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
