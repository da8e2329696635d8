package pool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/executord/executord/ipc/worker"
)

const (
	// exitGrace is what a worker has to exit after its channel was closed, by either side, before it is killed.
	exitGrace = 2 * time.Second
	// deathGrace is how long the channel of a killed process may stay open: something it started may hold it.
	deathGrace = time.Second
	// Heartbeats beyond these are a flood.
	beatBurst     = 50
	beatsEach     = worker.HeartbeatInterval / 10
	maxLayers     = 32
	maxLayerBytes = 128
)

// errRetired ends the life of a member that is not needed any more.
var errRetired = errors.New("worker retired")

// memberState is where a worker is in its life.
type memberState uint8

const (
	starting  memberState = iota // not ready for the first time
	idle                         // holds an isolate and waits
	running                      // has an execution, or is about to get it; or invocations of what it retains
	keeping                      // holds an isolate that is retained, in which nothing runs
	restoring                    // gave its result, makes the next isolate
	leaving                      // takes no execution any more
)

var stateNames = [...]string{"starting", "idle", "running", "retained", "restoring", "leaving"}

// member is one worker process of the pool.
type member struct {
	pool   *Pool
	name   string
	born   time.Time
	ageing float64 // of Config.WorkerMaxAge it lives this part, so that not all retire at once

	// Guarded by Pool.mu.
	state      memberState
	due        bool // to be replaced; serves until the replacement is there
	executions int
	lane       *lane     // whose execution runs, with state running
	held       *retained // whose isolate it has: nobody else gets it
	hello      worker.Hello
	pid        int

	run      atomic.Pointer[run] // under way; set by Execute, cleared by the reader
	gone     atomic.Bool         // the reader ended: no run may begin
	lastID   atomic.Uint64       // the greatest of an execution or invocation that it was told
	baseline atomic.Int64        // resident bytes at rest
	rss      atomic.Int64        // last seen at rest or by a heartbeat
	heard    atomic.Int64        // when a frame came last, unix nanoseconds

	rested time.Duration // CPU time of the isolate's thread when it became idle; whoever takes the member may read it

	// Set by start, before anybody else sees the member running.
	proc  Process
	conn  *worker.Conn
	meter meter

	mu       sync.Mutex
	retired  bool // stop was called
	channel  *worker.Conn
	killedAt atomic.Int64 // unix nanoseconds, 0 while it was not killed

	// The reader's own.
	kept      *retained // until it makes itself ready
	blame     *run      // the invocation that the last frame was of
	word      *worker.LastWord
	moveBy    time.Time // when it has to be ready again, or gone after its last word; zero for never
	beats     int
	beatsFrom time.Time
	firstRSS  int64
}

// live is the whole life of a worker, on one goroutine: the reader of its channel.
func (m *member) live(ctx context.Context) {
	err := m.start(ctx)
	if err == nil {
		took := m.pool.outside.now().Sub(m.born)
		m.pool.measure.start(took)
		m.pool.emit(Event{Kind: WorkerReady, Worker: m.name, PID: m.pid, Took: took})
		err = m.join()
	}
	if err == nil {
		err = m.serve()
	}
	m.bury(err)
}

// start launches the process and waits until it is ready.
func (m *member) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.pool.config().SpawnTimeout)
	defer cancel()
	proc, err := m.pool.config().Launcher.Start(ctx)
	if err != nil {
		return err
	}
	m.proc = proc
	m.conn, err = worker.NewConn(proc.Conn(), worker.Options{Side: worker.Parent, MaxReceive: m.pool.config().frameBytes()})
	if err != nil {
		proc.Conn().Close()
		return fmt.Errorf("%w: %w", errUnfit, err)
	}
	if m.meter, err = m.pool.outside.meter(proc.PID()); err != nil {
		return fmt.Errorf("%w: %w", errUnfit, err)
	}
	if !m.open() {
		return errRetired
	}
	m.pool.note(m, func() { m.pid = proc.PID() })
	m.pool.emit(Event{Kind: WorkerStarted, Worker: m.name, PID: proc.PID()})
	return m.greet()
}

// open makes the channel reachable for stop; false when stop was there first.
func (m *member) open() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.channel = m.conn
	m.conn.RaiseMaxReceive(m.pool.config().frameBytes()) // it may have been raised meanwhile
	return !m.retired
}

// stop makes the worker end: it closes the channel, and the reader sees to the rest.
func (m *member) stop() {
	m.mu.Lock()
	m.retired = true
	conn := m.channel
	m.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
}

// accept makes a worker's frames welcome up to n bytes.
func (m *member) accept(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.channel != nil {
		m.channel.RaiseMaxReceive(n)
	}
}

func (m *member) isRetired() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.retired
}

// kill ends the process at once. Its channel is read to the end, for a bounded time.
func (m *member) kill() {
	now := time.Now()
	m.killedAt.CompareAndSwap(0, now.UnixNano())
	m.proc.Kill()
	_ = m.conn.SetReadDeadline(now.Add(deathGrace))
}

// greet reads the frames from start to ready.
func (m *member) greet() error {
	_ = m.conn.SetReadDeadline(m.born.Add(m.pool.config().SpawnTimeout))
	err := m.greeted()
	if err == errSilent {
		return fmt.Errorf("%w: it was not ready within %s", errUnfit, m.pool.config().SpawnTimeout)
	}
	return err
}

func (m *member) greeted() error {
	if err := m.introduced(); err != nil {
		return err
	}
	for {
		next, err := m.conn.Receive()
		if err != nil {
			return m.why(err)
		}
		switch next := next.(type) {
		case worker.Ready:
			m.pool.measure.restore(next.Restore, m.pool.outside.now().Sub(m.born))
			return nil
		case worker.Heartbeat:
		case worker.LastWord:
			m.word = &next
		default:
			return violationf("%T before Ready", next)
		}
	}
}

// introduced reads until Hello, and decides whether the worker will do.
func (m *member) introduced() error {
	for {
		msg, err := m.conn.Receive()
		if err != nil {
			return m.why(err)
		}
		switch msg := msg.(type) {
		case worker.Hello:
			if msg.Version != worker.Version {
				return fmt.Errorf("%w: it speaks version %d of the contract, not %d", errUnfit, msg.Version, worker.Version)
			}
			return m.confined(tidy(msg))
		case worker.LastWord:
			m.word = &msg
		default:
			return violationf("%T before Hello", msg)
		}
	}
}

// confined joins what the worker says of its isolation with what its launcher made, warns of what is missing, and refuses
// a worker that has less than is required.
func (m *member) confined(h worker.Hello) error {
	layers, missing := m.proc.Isolation()
	h.Layers, h.Missing = append(layers, h.Layers...), append(missing, h.Missing...)
	h.Missing = slices.DeleteFunc(h.Missing, func(entry string) bool { // what one cannot the other may
		layer, _, _ := strings.Cut(entry, ":")
		return slices.Contains(h.Layers, layer)
	})
	m.pool.note(m, func() { m.hello = h })
	m.pool.warnOf(h.Missing)
	for _, required := range m.pool.config().RequireLayers {
		if !slices.Contains(h.Layers, required) {
			return fmt.Errorf("%w: %w: %s", errUnfit, errUnconfined, missingLayer(required, h.Missing))
		}
	}
	return nil
}

// missingLayer is the entry of a layer with its reason, or its name alone.
func missingLayer(layer string, missing []string) string {
	for _, entry := range missing {
		if strings.HasPrefix(entry, layer+": ") {
			return entry
		}
	}
	return layer
}

// warnOf warns of layers that are missing, once for as long as they are the same.
func (p *Pool) warnOf(missing []string) {
	text := strings.Join(missing, ", ")
	p.mu.Lock()
	news := text != p.warned
	p.warned = text
	p.mu.Unlock()
	if news && text != "" {
		p.log.Warn("workers are not isolated as far as they could be", "missing", text)
	}
}

// tidy keeps of a hello what may be shown to the operator.
func tidy(h worker.Hello) worker.Hello {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return -1
		}, Clip(s, maxLayerBytes))
	}
	h.Engine = plain(h.Engine)
	for _, list := range []*[]string{&h.Layers, &h.Missing} {
		*list = slices.Clone((*list)[:min(len(*list), maxLayers)])
		for i, text := range *list {
			(*list)[i] = plain(text)
		}
	}
	return h
}

// join makes a member that is ready available; it returns errRetired when the pool does not need it any more.
func (m *member) join() error {
	m.kept, m.blame, m.moveBy = nil, nil, time.Time{}
	if rss, err := m.meter.rss(); err == nil {
		m.baseline.Store(rss)
		m.rss.Store(rss)
		if m.firstRSS == 0 {
			m.firstRSS = rss
		}
	}
	m.rested, _ = m.meter.thread()
	m.beats, m.beatsFrom = 0, time.Now()
	return m.pool.join(m, m.baseline.Load()-m.firstRSS > m.pool.config().WorkerMaxGrowthBytes)
}

// serve reads frames until the worker ends, or has to.
func (m *member) serve() error {
	for {
		m.armDeadline()
		msg, err := m.conn.Receive()
		if err != nil {
			return m.why(err)
		}
		if err := m.handle(msg); err != nil {
			return err
		}
	}
}

// armDeadline sets when silence counts as death. The deadline of a process that was killed is nearer, whichever of
// kill and this came last.
func (m *member) armDeadline() {
	now := time.Now()
	m.heard.Store(now.UnixNano())
	by := now.Add(m.pool.config().HeartbeatTimeout)
	if moveBy := m.movesBy(); !moveBy.IsZero() && moveBy.Before(by) {
		by = moveBy
	}
	_ = m.conn.SetReadDeadline(by)
	if killed := m.killedAt.Load(); killed != 0 {
		_ = m.conn.SetReadDeadline(time.Unix(0, killed).Add(deathGrace))
	}
}

// why translates an error of the channel.
func (m *member) why(err error) error {
	var frame *worker.FrameError
	switch {
	case m.isRetired():
		return errRetired
	case errors.As(err, &frame):
		return &violation{what: frame.Error()}
	case m.killedAt.Load() != 0:
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSilent
	case errors.Is(err, net.ErrClosed):
		return errDeaf
	}
	return err // the other side closed the channel: the process ended, or will
}

// How a worker can be alive and of no use.
var (
	errSilent = errors.New("worker was silent for too long")
	errDeaf   = errors.New("worker does not read its channel")
	errUnfit  = errors.New("worker is unfit")
	// errUnconfined goes with errUnfit where a layer of isolation is missing that is required.
	errUnconfined = errors.New("a required layer of isolation is not in force")
)

// find is the run that a frame is about.
func (m *member) find(id uint64, frame worker.Message) (*run, error) {
	if r := m.run.Load(); r != nil && r.id == id {
		return r, nil
	}
	if m.kept != nil {
		if m.blame = m.kept.find(id); m.blame != nil {
			return m.blame, nil
		}
	}
	return nil, violationf("%T for execution %d, which it does not have", frame, id)
}

// handle acts on one frame of a worker that is ready.
func (m *member) handle(frame worker.Message) error {
	switch msg := frame.(type) {
	case worker.Heartbeat:
		return m.heartbeat(msg)
	case worker.Log:
		r, err := m.find(msg.ID, frame)
		if err != nil {
			return err
		}
		return r.logs.add(msg)
	case worker.ToolCall:
		r, err := m.find(msg.ID, frame)
		if err != nil {
			return err
		}
		return r.toolCall(msg)
	case worker.Fetch:
		r, err := m.find(msg.ID, frame)
		if err != nil {
			return err
		}
		return r.fetch(msg)
	case worker.FetchRead:
		r, err := m.find(msg.ID, frame)
		if err != nil {
			return err
		}
		return r.fetchRead(msg)
	case worker.FetchCancel:
		r, err := m.find(msg.ID, frame)
		if err != nil {
			return err
		}
		return r.fetchCancel(msg)
	case worker.Result:
		r, err := m.find(msg.ID, frame)
		if err != nil {
			return err
		}
		return m.result(r, msg)
	case worker.Ready:
		return m.readyAgain(msg)
	case worker.LastWord:
		m.word, m.moveBy = &msg, time.Now().Add(exitGrace)
		return nil
	}
	return violationf("%T once it was ready", frame)
}

// readyAgain takes the word of a worker that has room for an execution.
func (m *member) readyAgain(msg worker.Ready) error {
	by := m.movesBy()
	switch {
	case m.word != nil:
		return nil // as with a result
	case m.kept != nil && m.killedAt.Load() != 0:
		return nil // an invocation was stopped, and it is killed for the others
	case by.IsZero():
		return violationf("Ready without a reason")
	}
	m.pool.measure.restore(msg.Restore, m.pool.config().SpawnTimeout-time.Until(by))
	return m.join()
}

// movesBy is when it has to be ready again, or gone after its last word; zero for never.
func (m *member) movesBy() time.Time {
	if m.moveBy.IsZero() && m.kept != nil {
		if at := m.kept.letGo.Load(); at != 0 {
			return time.Unix(0, at).Add(m.pool.config().SpawnTimeout)
		}
	}
	return m.moveBy
}

// tell notes the number of what it is about to be told of. Executions come in the order of the queue, not of their numbers.
// Nobody else tells it of anything at the same time.
func (m *member) tell(id uint64) { m.lastID.Store(max(m.lastID.Load(), id)) }

// heartbeat may name an execution that just ended, for it comes from another thread of the worker.
func (m *member) heartbeat(h worker.Heartbeat) error {
	if h.ID > m.lastID.Load() {
		return violationf("heartbeat for execution %d, which it does not have", h.ID)
	}
	m.beats++
	if m.beats > beatBurst+int(time.Since(m.beatsFrom)/beatsEach) {
		return violationf("a flood of heartbeats")
	}
	r := m.run.Load()
	if m.kept != nil {
		r = m.kept.find(h.ID)
	}
	if r != nil && h.ID == r.id {
		r.beat(h)
	}
	if rss, err := m.meter.rss(); err == nil {
		m.rss.Store(rss)
	}
	if m.kept != nil {
		m.kept.flush()
		return m.kept.watch(m.rss.Load())
	}
	return nil
}

// result ends the execution: first the place is free, then the caller hears of it, then the worker makes itself ready.
func (m *member) result(r *run, msg worker.Result) error {
	if m.word != nil {
		return nil // the worker is dying: what stopped it stands
	}
	out, err := r.settle(msg)
	if out == nil {
		return err
	}
	if r.invoked != nil {
		return m.returned(r, msg, out)
	}
	m.run.Store(nil)
	if msg.Retained {
		return m.retain(r, msg, out)
	}
	m.moveBy = time.Now().Add(m.pool.config().SpawnTimeout)
	exhausted := m.pool.finished(m, r, out)
	r.finish(out)
	if exhausted {
		return errRetired
	}
	return nil
}
