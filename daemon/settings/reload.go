package settings

import (
	"fmt"
	"maps"
	"sync"
)

// Loaded are the settings in force. Its methods may be called by several goroutines at once.
type Loaded struct {
	boot      Settings
	variables map[string]string

	reloading sync.Mutex // held during a Reload, before mu

	mu      sync.Mutex
	now     *resolved
	waiting map[string]string // what only a restart would apply, by name
}

// Load reads the settings from a command line without its first word, and from the environment as os.Environ has it. Each
// setting is taken from the first that has it: flag, variable, the file of --settings-file, default. The error is ErrHelp
// or ErrVersion where those are asked for, or Faults.
func Load(args, environ []string) (*Loaded, error) {
	r, err := resolve(args, environ)
	if err != nil {
		return nil, err
	}
	return &Loaded{boot: r.settings, variables: r.variables, now: r}, nil
}

// Settings are those in force now.
func (l *Loaded) Settings() Settings {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now.settings
}

// Variables of the OpenTelemetry SDK (OTEL_*) that the settings file had when the service started. What the environment
// has itself comes before them.
func (l *Loaded) Variables() map[string]string { return maps.Clone(l.variables) }

// Changes are what a Reload found, by the names of settings.
type Changes struct {
	Applied     []string // have their new value
	NeedRestart []string // have their old one until the service is restarted
}

// Reload reads the settings again, and takes over those that can change while the service runs. Apply gets the settings
// that are to be in force, and does what has to be done; when it fails, it must have left everything as it was. On any
// error all settings stay as they were.
func (l *Loaded) Reload(args, environ []string, apply func(Settings) error) (Changes, error) {
	l.reloading.Lock()
	defer l.reloading.Unlock()
	found, err := resolve(args, environ)
	if err != nil {
		return Changes{}, err
	}
	now := &resolved{settings: l.Settings(), origins: maps.Clone(l.now.origins)}
	changes, waiting := now.takeOver(found)
	if faults := now.check(map[string]bool{}); len(faults) > 0 {
		return Changes{}, fmt.Errorf("beside settings that only a restart changes: %w", faults)
	}
	if err := apply(now.settings); err != nil {
		return Changes{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now, l.waiting = now, waiting
	return changes, nil
}

// takeOver takes what may change from found, and tells what else differs.
func (r *resolved) takeOver(found *resolved) (c Changes, waiting map[string]string) {
	waiting = map[string]string{}
	for i := range declared {
		d := &declared[i]
		from, into := d.in(&found.settings), d.in(&r.settings)
		differs := d.differs(&found.settings, &r.settings)
		switch {
		case differs && !d.reload:
			c.NeedRestart = append(c.NeedRestart, d.name)
			waiting[d.name] = d.show(from)
			continue
		case differs:
			c.Applied = append(c.Applied, d.name)
		}
		into.Set(from)
		r.origins[d.name] = found.origins[d.name]
	}
	return c, waiting
}
