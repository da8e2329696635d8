package daemon

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/executord/executord/daemon/lifecycle"
	"github.com/executord/executord/ipc/protocol"
)

// Maintenance is why the service takes nothing new.
type Maintenance struct {
	Reason string    `json:"reason"` // callers are told
	Who    string    `json:"who"`    // wants it
	Since  time.Time `json:"since"`
	Kept   bool      `json:"kept"` // outlives a restart
}

// Bounds of the texts of a Maintenance, and of its file, in bytes.
const (
	maxReasonBytes = 512
	maxWhoBytes    = 128
	maxStateBytes  = 64 << 10
)

// EnterMaintenance has new sessions and executions refused, and /readyz say no, with the reason; what is here goes on. In
// maintenance it changes the reason. Kept makes it outlive a restart, by a file in --state-dir.
func (d *Daemon) EnterMaintenance(reason, who string, kept bool) error {
	d.changing.Lock()
	defer d.changing.Unlock()
	m := &Maintenance{Reason: reason, Who: who, Since: time.Now(), Kept: kept}
	if err := m.check(); err != nil {
		return err
	}
	if s := d.machine.State(); s != lifecycle.Ready && s != lifecycle.Maintenance {
		return fmt.Errorf("cannot enter maintenance while the service is %s", s)
	}
	if err := d.keep(m); err != nil {
		return err
	}
	if !d.enter(m) {
		return errors.Join(fmt.Errorf("cannot enter maintenance while the service is %s", d.machine.State()), d.keep(&Maintenance{}))
	}
	return nil
}

// enter lets the state say what m is about: first the reason is there, then the state that asks for it.
func (d *Daemon) enter(m *Maintenance) bool {
	before := d.maintenance.Swap(m)
	if d.fire(lifecycle.MaintenanceEntered, m.Reason, m.Who) {
		return true
	}
	d.maintenance.Store(before)
	return false
}

// LeaveMaintenance ends it, for who, and for restarts too.
func (d *Daemon) LeaveMaintenance(who string) error {
	d.changing.Lock()
	defer d.changing.Unlock()
	if len(who) > maxWhoBytes || !isLine(who) {
		return fmt.Errorf("cannot leave maintenance: the name of who wants it must be one line of at most %d bytes", maxWhoBytes)
	}
	if s := d.machine.State(); s != lifecycle.Maintenance {
		return fmt.Errorf("cannot leave maintenance while the service is %s", s)
	}
	if err := d.keep(&Maintenance{}); err != nil {
		return err
	}
	if !d.fire(lifecycle.MaintenanceLeft, "", who) {
		return fmt.Errorf("cannot leave maintenance while the service is %s", d.machine.State())
	}
	d.maintenance.Store(nil)
	return nil
}

// Maintenance is the one that the service is in; nil when it is in none.
func (d *Daemon) Maintenance() *Maintenance {
	if d.machine.State() != lifecycle.Maintenance {
		return nil
	}
	return d.maintenance.Load()
}

func (m *Maintenance) check() error {
	switch {
	case len(m.Reason) > maxReasonBytes || !isLine(m.Reason):
		return fmt.Errorf("cannot enter maintenance: the reason must be one line of at most %d bytes", maxReasonBytes)
	case len(m.Who) > maxWhoBytes || !isLine(m.Who):
		return fmt.Errorf("cannot enter maintenance: the name of who wants it must be one line of at most %d bytes", maxWhoBytes)
	}
	return nil
}

func isLine(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) })
}

// admit says why nothing new is taken; nil when it is.
func (d *Daemon) admit() *protocol.Error {
	if s := d.machine.State(); !s.Admits() {
		return d.refusal(s)
	}
	return nil
}

func (d *Daemon) refusal(s lifecycle.State) *protocol.Error {
	switch {
	case s == lifecycle.Maintenance:
		text := "the service is in maintenance"
		if m := d.maintenance.Load(); m != nil && m.Reason != "" {
			text += ": " + m.Reason
		}
		return protocol.Errorf(protocol.Maintenance, "%s", text)
	case boots(s):
		return protocol.Errorf(protocol.Maintenance, "the service is starting")
	}
	return errStopping()
}

func errStopping() *protocol.Error {
	return protocol.Errorf(protocol.Draining, "the service is stopping")
}

// stateFile is where a maintenance is kept.
func (d *Daemon) stateFile() string {
	if dir := d.settings.Load().StateDir; dir != "" {
		return filepath.Join(dir, "maintenance.json")
	}
	return ""
}

// keep writes m where it outlives a restart, or sees to it that nothing does.
func (d *Daemon) keep(m *Maintenance) error {
	file := d.stateFile()
	switch {
	case m.Kept && file == "":
		return errors.New("cannot keep a maintenance over a restart without --state-dir")
	case m.Kept:
		text, err := json.Marshal(m)
		if err == nil {
			err = replaceFile(file, append(text, '\n'))
		}
		if err != nil {
			return fmt.Errorf("cannot keep the maintenance: %w", err)
		}
	case file != "":
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot forget the maintenance that was kept: %w", err)
		}
	}
	return nil
}

// replaceFile writes a file that is there in full or as it was, also after a crash.
func replaceFile(path string, text []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(cmp.Or(err, f.Sync()), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// restoreMaintenance enters the one that was kept; false where there is none. Of a file that cannot be read nobody knows
// what it asks for: better take nothing.
func (d *Daemon) restoreMaintenance() bool {
	file := d.stateFile()
	if file == "" {
		return false
	}
	m, err := readMaintenance(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		d.log.Error("cannot read the maintenance that was kept", "error", err.Error())
		m = &Maintenance{Reason: "the file of a maintenance that was kept cannot be read", Since: time.Now()}
	}
	m.Kept = true
	d.changing.Lock()
	defer d.changing.Unlock()
	return d.enter(m)
}

func readMaintenance(file string) (*Maintenance, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxStateBytes {
		return nil, fmt.Errorf("%s is no regular file of at most %d bytes", file, maxStateBytes)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var m Maintenance
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", file, err)
	}
	return &m, m.check()
}
