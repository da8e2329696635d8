package daemon

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/executord/executord/daemon/lifecycle"
	"github.com/executord/executord/daemon/settings"
)

// ReloadResult is how the last reload went.
type ReloadResult struct {
	Time    time.Time
	Changes settings.Changes
	Err     error // why everything stayed as it was; nil when it did not
}

// LastReload is the newest; nil before the first.
func (d *Daemon) LastReload() *ReloadResult { return d.reloaded.Load() }

// Reload reads the settings again as far as they can change while the service runs, and the files of tokens and
// certificates. Where anything is wrong everything stays as it was, and the error, which LastReload keeps, says what.
// Sessions whose caller is not let in any more end, see server.Server.Reconfigure. During the start it is put off to its
// end, and while the service stops it is refused. Who is whose doing it is, for the log; empty for nobody's in particular.
func (d *Daemon) Reload(who string) error {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	switch s := d.machine.State(); {
	case boots(s):
		d.owed = true
		return nil
	case !d.fire(lifecycle.ReloadBegan, "", who):
		return fmt.Errorf("cannot reload while the service is %s", d.machine.State())
	}
	result := &ReloadResult{}
	if d.reload != nil {
		result.Changes, result.Err = d.reload(d.apply)
	} else {
		result.Err = d.apply(*d.settings.Load())
	}
	result.Time = time.Now()
	d.reloaded.Store(result)
	reason := ""
	if result.Err != nil {
		reason = result.Err.Error()
	} else {
		d.log.Info("settings read again", "changed", strings.Join(result.Changes.Applied, " "), "needRestart", strings.Join(result.Changes.NeedRestart, " "))
	}
	d.fire(lifecycle.ReloadEnded, reason, who)
	return result.Err
}

// reloadOwed does what was put off.
func (d *Daemon) reloadOwed() {
	d.reloading.Lock()
	owed := d.owed
	d.reloading.Unlock()
	if owed {
		_ = d.Reload("") // LastReload keeps the error
	}
}

// apply takes settings into force, or leaves everything as it is.
func (d *Daemon) apply(s settings.Settings) error {
	c, err := d.serverConfig(&s)
	if err != nil {
		return err
	}
	workers, err := poolConfig(&s, d.log)
	if err != nil {
		return err
	}
	d.mu.Lock()
	parts := d.parts
	d.mu.Unlock()
	if err := parts.pool.Reconfigure(workers); err != nil {
		return err
	}
	if err := parts.server.Reconfigure(c); err != nil {
		before, undoErr := poolConfig(d.settings.Load(), d.log)
		return errors.Join(err, undoErr, parts.pool.Reconfigure(before))
	}
	d.level.Set(s.LogLevel)
	d.settings.Store(&s)
	return nil
}
