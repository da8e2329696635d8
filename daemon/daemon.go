package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/executord/executord/daemon/events"
	"github.com/executord/executord/daemon/executor"
	"github.com/executord/executord/daemon/lifecycle"
	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/daemon/server"
	"github.com/executord/executord/daemon/settings"
	"github.com/executord/executord/daemon/systemd"
	"github.com/executord/executord/daemon/telemetry"
)

// Daemon is the service, made of its parts.
type Daemon struct {
	options
	machine  *lifecycle.Machine
	ring     *events.Ring
	pool     pool.Config
	server   server.Config
	listen   []net.Addr
	settings atomic.Pointer[settings.Settings]    // in force
	entered  atomic.Pointer[lifecycle.Transition] // into the state that it is in, or to another reason for it
	ran      atomic.Bool
	started  time.Time                 // Run
	limit    sync.Once                 // starts the stop timeout
	stopBy   atomic.Pointer[time.Time] // when whoever started the service loses patience; nil before a stop

	asking sync.Mutex // held during Stop
	asked  int        // how often

	changing    sync.Mutex // held while maintenance is entered or left
	maintenance atomic.Pointer[Maintenance]

	reloading sync.Mutex // held during a reload
	owed      bool       // a reload was asked for while booting; guarded by reloading
	reloaded  atomic.Pointer[ReloadResult]

	mu        sync.Mutex
	parts     parts // empty before the listeners are open
	addresses []net.Addr
}

// parts are what a reload changes.
type parts struct {
	pool   *pool.Pool
	server *server.Server
}

// Bounds of the start, and of what is waited for at an end that is cut short.
const (
	bootTimeout = time.Minute
	lastMoment  = time.Second
)

// ErrCutShort is what Run returns where a third request or the stop timeout ended the service at once: outcomes may be
// lost, and what could not be waited for is still on its way out.
var ErrCutShort = errors.New("cannot stop in order: it was cut short")

// New checks the settings, and reads the files that they name. It starts nothing.
func New(s settings.Settings, set ...Option) (*Daemon, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	d := &Daemon{
		options: options{version: "devel", log: slog.New(slog.DiscardHandler), level: &slog.LevelVar{}},
		machine: lifecycle.New(), ring: events.New(events.Size),
	}
	for _, o := range set {
		o(&d.options)
	}
	d.settings.Store(&s)
	d.level.Set(s.LogLevel)
	var err error
	if d.pool, err = poolConfig(&s, d.log); err != nil {
		return nil, err
	}
	if d.telemetry == nil {
		if err := telemetry.Check(); err != nil {
			return nil, err
		}
	}
	d.pool.OnEvent = events.NewFeed(d.ring).Pool
	if d.server, err = d.serverConfig(&s); err != nil {
		return nil, err
	}
	if len(d.listeners) == 0 {
		if d.listen, err = parseAddresses(s.Listen); err != nil {
			return nil, err
		}
	}
	first := d.machine.Last()
	d.entered.Store(&first)
	d.machine.Subscribe(d.tell)
	return d, nil
}

// State is what the service is doing.
func (d *Daemon) State() lifecycle.State { return d.machine.State() }

// Subscribe has observe called with every transition from now on, in their order, until unsubscribe is called. It must be
// quick and must not call Stop, Reload, EnterMaintenance or LeaveMaintenance.
func (d *Daemon) Subscribe(observe func(lifecycle.Transition)) (unsubscribe func()) {
	return d.machine.Subscribe(observe)
}

// Events are the news of the service, which end with Run.
func (d *Daemon) Events() *events.Ring { return d.ring }

// WaitReady returns once callers are served, which is so in maintenance too. Its error is that of ctx, or says that the
// service has ended.
func (d *Daemon) WaitReady(ctx context.Context) error {
	s, err := d.machine.Wait(ctx, func(s lifecycle.State) bool { return !boots(s) })
	if err == nil && s != lifecycle.Ready && s != lifecycle.Maintenance {
		return fmt.Errorf("cannot serve: the service is %s", s)
	}
	return err
}

// Alive returns nil when the service can do its work: its parts answer, and workers are heard. Its error comes when ctx
// ends. A watchdog should ask it.
func (d *Daemon) Alive(ctx context.Context) error {
	d.mu.Lock()
	p := d.parts
	d.mu.Unlock()
	if p.pool == nil {
		return nil // what a start may take is bounded elsewhere
	}
	_ = p.server.Stats() // needs the lock that sessions need
	return p.pool.Alive(ctx)
}

// Addresses are those that are listened on, once WaitReady has returned.
func (d *Daemon) Addresses() []net.Addr {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.addresses
}

// boots tells that nothing is served yet.
func boots(s lifecycle.State) bool {
	return s == lifecycle.Booting || s == lifecycle.Checking || s == lifecycle.Opening
}

// Run serves until Stop is called or ctx ends, which is the first request to stop, and the service has ended. It returns
// nil after an ordered end, ErrCutShort after another, and otherwise why it could not start or go on. It can be called
// once.
func (d *Daemon) Run(ctx context.Context) error {
	if !d.ran.CompareAndSwap(false, true) {
		return errors.New("cannot run a service twice")
	}
	d.started = time.Now()
	heard := d.deliver()
	defer closeAll(d.listeners)
	if d.adminListener != nil {
		defer closeAll([]net.Listener{d.adminListener})
	}
	release := context.AfterFunc(ctx, d.Stop)
	defer release()
	err := d.observed()
	if err == nil {
		d.fire(lifecycle.Ended, "", "")
	} else {
		d.fire(lifecycle.EndedBadly, err.Error(), "")
	}
	if last := d.machine.Last(); last.Event == lifecycle.Cut {
		err = fmt.Errorf("%w: %s", ErrCutShort, last.Reason)
	}
	d.ring.Close()
	select {
	case <-heard:
	case <-time.After(2 * lastMoment):
	}
	return err
}

// observed is run with telemetry, whose last is sent after the last execution has ended.
func (d *Daemon) observed() error {
	t := d.telemetry
	if t == nil {
		var err error
		if t, err = telemetry.New(telemetry.Config{Version: d.version, Page: d.settings.Load().Metrics, Logger: d.log}); err != nil {
			return d.bootFault(lifecycle.BootFailed, err)
		}
	}
	d.pool.Meter, d.pool.Tracer = t.Meter, t.Tracer
	d.server.Meter, d.server.Metrics = t.Meter, t.Page
	err := d.run()
	d.closeUnlessCut("telemetry is lost", t.Close)
	return err
}

func (d *Daemon) run() error {
	boot, release := d.machine.Until(context.Background(), func(s lifecycle.State) bool { return !boots(s) })
	defer release()
	boot, cancel := context.WithTimeout(boot, bootTimeout)
	defer cancel()
	d.log.Info("starting workers", "version", d.version, "workers", d.pool.Workers)
	s := d.settings.Load()
	config := d.pool
	if s.WorkerSocket != "" {
		var err error
		if config.Launcher, err = systemd.NewUnits(boot, systemd.UnitsConfig{Socket: s.WorkerSocket, Logger: d.log}); err != nil {
			return d.bootFault(lifecycle.BootFailed, err)
		}
	}
	p, err := executor.New(boot, executor.Config{WorkerBinary: s.WorkerBinary, Tune: func(c *pool.Config) { *c = config }})
	if err != nil {
		return d.bootFault(lifecycle.BootFailed, err)
	}
	defer d.closeUnlessCut("workers did not end in order", p.Close)
	if !d.fire(lifecycle.WorkersReady, "", "") {
		return nil
	}
	if err := selfCheck(boot, p); err != nil {
		return d.bootFault(lifecycle.CheckFailed, err)
	}
	if !d.fire(lifecycle.CheckPassed, "", "") {
		return nil
	}
	return d.serve(p)
}

// bootFault makes a fault of the start nil when it was only that somebody stopped it.
func (d *Daemon) bootFault(e lifecycle.Event, err error) error {
	if !d.fire(e, err.Error(), "") {
		return nil
	}
	return err
}

// serve opens the listeners and answers on them until the end.
func (d *Daemon) serve(p *pool.Pool) error {
	c := d.server
	c.Ready = func() error { return d.ready(p) }
	srv, err := server.New(p, c)
	if err != nil {
		return d.bootFault(lifecycle.ListenerFailed, err)
	}
	listeners, err := d.open()
	if err != nil {
		return d.bootFault(lifecycle.ListenerFailed, err)
	}
	defer closeAll(listeners)
	desk, err := d.openAdmin()
	if err != nil {
		return d.bootFault(lifecycle.ListenerFailed, err)
	}
	if desk != nil {
		defer closeAll([]net.Listener{desk})
	}
	d.mu.Lock()
	d.parts = parts{p, srv}
	d.mu.Unlock()
	stopAdmin, err := d.startAdmin(desk, p, srv)
	if err != nil {
		return d.bootFault(lifecycle.ListenerFailed, err)
	}
	defer stopAdmin() // the operator may watch to the end
	if !d.restoreMaintenance() && !d.fire(lifecycle.Opened, "", "") {
		return nil
	}
	front, err := srv.Start(listeners...) // callers that came meanwhile have waited in the backlog
	if err != nil {
		d.fire(lifecycle.ListenerFailed, err.Error(), "")
		return err
	}
	d.reloadOwed()
	return d.end(srv, front)
}

// ready says why /readyz turns callers away.
func (d *Daemon) ready(p *pool.Pool) error {
	switch s := d.machine.State(); {
	case s == lifecycle.DrainDelay:
		return errStopping()
	case !s.Ready():
		return d.refusal(s)
	}
	return workersReady(p)
}

// fire lets e happen, unless the state has moved on and it cannot any more.
func (d *Daemon) fire(e lifecycle.Event, reason, who string) bool {
	_, err := d.machine.Fire(e, reason, who)
	return err == nil
}

// closeUnlessCut closes a part of the service. When that is cut short, the part has been told to go, and goes with the
// process at the latest.
func (d *Daemon) closeUnlessCut(warning string, closePart func() error) {
	ended := make(chan error, 1)
	go func() { ended <- closePart() }()
	cut, release := d.machine.Until(context.Background(), lifecycle.State.Final)
	defer release()
	var err error
	select {
	case err = <-ended:
	case <-cut.Done():
		select {
		case err = <-ended:
		case <-time.After(lastMoment):
		}
	}
	if err != nil {
		d.log.Warn(warning, "error", err.Error())
	}
}

// deliver calls those who want to hear of events, until the ring is closed.
func (d *Daemon) deliver() (heard <-chan struct{}) {
	var hearing sync.WaitGroup
	for _, hear := range d.hear {
		news := d.ring.Subscribe(0)
		hearing.Go(func() {
			for {
				list, missed, err := news.Next(context.Background())
				if err != nil {
					return
				}
				list[0].Omitted += int64(missed)
				for _, e := range list {
					hear(e)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		hearing.Wait()
		close(done)
	}()
	return done
}
