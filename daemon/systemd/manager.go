package systemd

import (
	"context"
	"errors"
	"fmt"
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

// bus is the manager of the machine, over D-Bus.
type bus struct {
	conn   *dbus.Conn
	prefix string // of the names of worker units

	mu    sync.Mutex
	units map[dbus.ObjectPath]*busEnding
}

func dialManager(ctx context.Context, prefix string) (*bus, error) {
	conn, err := dbus.ConnectSystemBus()
	if err != nil {
		return nil, fmt.Errorf("cannot reach the system's bus: %w", err)
	}
	b := &bus{conn: conn, prefix: prefix, units: map[dbus.ObjectPath]*busEnding{}}
	signals := make(chan *dbus.Signal, 64)
	conn.Signal(signals)
	if err := b.manager().CallWithContext(ctx, managerIface+".Subscribe", 0).Err; err != nil {
		return nil, errors.Join(fmt.Errorf("cannot reach systemd: %w", err), conn.Close())
	}
	go b.listen(signals)
	return b, nil
}

func (b *bus) manager() dbus.BusObject { return b.conn.Object(managerName, managerPath) }

func (b *bus) close() error { return b.conn.Close() }

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
	b.mu.Unlock()
	// A unit that ended before systemd knows that somebody listens is not heard of; its process's end is.
	_ = b.conn.AddMatchSignalContext(ctx, e.match()...)
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
	_ = e.bus.conn.RemoveMatchSignal(e.match()...)
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
