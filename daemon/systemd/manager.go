package systemd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	systemdbus "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"

	"github.com/executord/executord/daemon/pool"
)

// manager is what Units needs of systemd.
type manager interface {
	// unit names the unit of a process, which must be a worker's.
	unit(pid int) (string, error)
	// workers are the units of workers that are there, of whichever service.
	workers(ctx context.Context) ([]string, error)
	// watch begins to follow a unit; it never fails, but may have nothing to tell.
	watch(ctx context.Context, unit string) ending
	// isolation is what a unit has of it.
	isolation(ctx context.Context, unit string) (isolation, error)
	// kill ends all processes of a unit.
	kill(ctx context.Context, unit string) error
	close() error
}

// ending is how a unit ends. Both methods are called once its main process is gone.
type ending interface {
	// state waits until the manager has said how the process ended.
	state(grace time.Duration) pool.ExitState
	// lingers waits for the unit to be gone, and tells whether it is not. It ends the watch.
	lingers(grace time.Duration) bool
}

// Names of org.freedesktop.systemd1(5).
const (
	managerName   = "org.freedesktop.systemd1"
	managerPath   = "/org/freedesktop/systemd1"
	managerIface  = managerName + ".Manager"
	unitIface     = managerName + ".Unit"
	serviceIface  = managerName + ".Service"
	propertyIface = "org.freedesktop.DBus.Properties"
)

// bus is the manager of the machine, over D-Bus. The connection may be lost, as when the bus is restarted; then there is
// soon another.
type bus struct {
	prefix string // of the names of worker units
	log    *slog.Logger
	life   context.Context // ends with close
	end    context.CancelFunc

	mu    sync.Mutex
	conn  *dbus.Conn
	units map[dbus.ObjectPath]*busEnding
}

// Pauses between attempts to reach the bus again.
const (
	firstRedial = 100 * time.Millisecond
	lastRedial  = 10 * time.Second
)

func dialManager(ctx context.Context, prefix string, log *slog.Logger) (*bus, error) {
	b := &bus{prefix: prefix, log: log, units: map[dbus.ObjectPath]*busEnding{}}
	b.life, b.end = context.WithCancel(context.Background())
	signals, err := b.connect(ctx)
	if err != nil {
		b.end()
		return nil, err
	}
	go b.follow(signals)
	return b, nil
}

// connect makes a connection, on which all units are watched that are.
func (b *bus) connect(ctx context.Context) (<-chan *dbus.Signal, error) {
	conn, err := dbus.ConnectSystemBus()
	if err != nil {
		return nil, fmt.Errorf("cannot reach the system's bus: %w", err)
	}
	signals := make(chan *dbus.Signal, 64)
	conn.Signal(signals)
	if err := conn.Object(managerName, managerPath).CallWithContext(ctx, managerIface+".Subscribe", 0).Err; err != nil {
		return nil, errors.Join(fmt.Errorf("cannot reach systemd: %w", err), conn.Close())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life.Err() != nil {
		return nil, errors.Join(context.Cause(b.life), conn.Close())
	}
	b.conn = conn
	for _, e := range b.units {
		_ = conn.AddMatchSignalContext(ctx, e.match()...)
	}
	return signals, nil
}

// follow hears what systemd says, for as long as the launcher lives.
func (b *bus) follow(signals <-chan *dbus.Signal) {
	for {
		b.listen(signals)
		if b.life.Err() != nil {
			return
		}
		b.log.Error("lost the system's bus: until it is back nobody says how workers end, and those that are stuck stay")
		for pause := firstRedial; ; pause = min(2*pause, lastRedial) {
			select {
			case <-time.After(pause):
			case <-b.life.Done():
				return
			}
			ctx, cancel := context.WithTimeout(b.life, lastRedial)
			again, err := b.connect(ctx)
			cancel()
			if err == nil {
				signals = again
				break
			}
			b.log.Debug("the system's bus is not back", "error", err.Error())
		}
		b.log.Info("reached the system's bus again")
	}
}

func (b *bus) connection() *dbus.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.conn
}

func (b *bus) manager() dbus.BusObject { return b.connection().Object(managerName, managerPath) }

func (b *bus) close() error {
	b.end()
	return b.connection().Close()
}

func (b *bus) kill(ctx context.Context, unit string) error {
	return b.manager().CallWithContext(ctx, managerIface+".KillUnit", 0, unit, "all", int32(syscall.SIGKILL)).Err
}

func (b *bus) workers(ctx context.Context) (names []string, err error) {
	var units [][]any
	states, patterns := []string{"active", "activating", "deactivating"}, []string{b.prefix + "*.service"}
	if err := b.manager().CallWithContext(ctx, managerIface+".ListUnitsByPatterns", 0, states, patterns).Store(&units); err != nil {
		return nil, err
	}
	for _, u := range units {
		if name, ok := u[0].(string); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

func (b *bus) watch(ctx context.Context, unit string) ending {
	e := &busEnding{bus: b, path: dbus.ObjectPath(managerPath + "/unit/" + systemdbus.PathBusEscape(unit)), known: make(chan struct{}), gone: make(chan struct{})}
	b.mu.Lock()
	b.units[e.path] = e
	conn := b.conn
	b.mu.Unlock()
	// A unit that ended before systemd knows that somebody listens is not heard of; its process's end is.
	_ = conn.AddMatchSignalContext(ctx, e.match()...)
	return e
}

// listen hands what systemd says to whom it concerns, until the connection ends.
func (b *bus) listen(signals <-chan *dbus.Signal) {
	for s := range signals {
		if s.Name != propertyIface+".PropertiesChanged" || len(s.Body) < 2 {
			continue
		}
		iface, _ := s.Body[0].(string)
		changed, _ := s.Body[1].(map[string]dbus.Variant)
		b.mu.Lock()
		e := b.units[s.Path]
		b.mu.Unlock()
		if e != nil {
			e.hear(iface, changed)
		}
	}
}

// busEnding is what was heard of one unit.
type busEnding struct {
	bus  *bus
	path dbus.ObjectPath

	mu     sync.Mutex
	exit   pool.ExitState
	result string
	code   int32         // of waitid(2)'s si_code, 0 until it is known
	known  chan struct{} // closed once code and result are
	gone   chan struct{} // closed once the unit is not active any more
}

func (e *busEnding) match() []dbus.MatchOption {
	return []dbus.MatchOption{dbus.WithMatchObjectPath(e.path), dbus.WithMatchInterface(propertyIface), dbus.WithMatchMember("PropertiesChanged")}
}

func (e *busEnding) hear(iface string, changed map[string]dbus.Variant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch iface {
	case serviceIface:
		if code, ok := changed["ExecMainCode"].Value().(int32); ok && code != 0 {
			status, _ := changed["ExecMainStatus"].Value().(int32)
			e.code, e.exit = code, exitState(code, status)
		}
		if result, ok := changed["Result"].Value().(string); ok {
			e.result = result
		}
	case unitIface:
		if state, ok := changed["ActiveState"].Value().(string); ok && (state == "inactive" || state == "failed") {
			shut(e.gone)
		}
	}
	// The result is settled with the state of the unit, the status of the process before.
	if e.code != 0 && (isShut(e.gone) || e.result != "" && e.result != "success") {
		shut(e.known)
	}
}

// Values of si_code for SIGCHLD (siginfo.h).
const (
	cldExited = 1
	cldKilled = 2
	cldDumped = 3
)

func exitState(code, status int32) pool.ExitState {
	switch code {
	case cldExited:
		return pool.ExitState{Code: int(status)}
	case cldKilled, cldDumped:
		return pool.ExitState{Signal: syscall.Signal(status)}
	}
	return pool.ExitState{Code: -1}
}

func (e *busEnding) state(grace time.Duration) pool.ExitState {
	await(e.known, grace)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.code == 0 {
		return pool.ExitState{Code: -1}
	}
	exit := e.exit
	switch e.result {
	case "oom-kill", "watchdog", "timeout":
		exit.Cause = e.result
	}
	return exit
}

func (e *busEnding) lingers(grace time.Duration) bool {
	ended := await(e.gone, grace)
	e.bus.mu.Lock()
	delete(e.bus.units, e.path)
	e.bus.mu.Unlock()
	_ = e.bus.connection().RemoveMatchSignal(e.match()...)
	return !ended
}

// await waits for a channel to be closed, and tells whether it is.
func await(c <-chan struct{}, grace time.Duration) bool {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return false
	}
}

func shut(c chan struct{}) {
	if !isShut(c) {
		close(c)
	}
}

func isShut(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// unit is the unit that the kernel has a process in, by its control group (cgroups(7)).
func (b *bus) unit(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", fmt.Errorf("cannot tell the unit of worker %d: %w", pid, err)
	}
	name, ok := unitIn(string(text), b.prefix)
	if !ok {
		return "", fmt.Errorf("worker %d is in no unit %s….service", pid, b.prefix)
	}
	return name, nil
}

// unitIn reads /proc/PID/cgroup.
func unitIn(text, prefix string) (string, bool) {
	for line := range strings.Lines(text) {
		// hierarchy:controllers:path, where systemd's own is version 2's "0::" or version 1's "n:name=systemd:".
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 || f[0] != "0" && f[1] != "name=systemd" {
			continue
		}
		for part := range strings.SplitSeq(f[2], "/") {
			if strings.HasPrefix(part, prefix) && strings.HasSuffix(part, ".service") {
				return part, true
			}
		}
	}
	return "", false
}
