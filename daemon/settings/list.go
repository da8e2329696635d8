package settings

// Setting is one setting as the operator sees it, over HTTP and on a terminal.
type Setting struct {
	Name             string `json:"name"`     // of the flag, without the hyphens
	Variable         string `json:"variable"` // of the environment or of the settings file
	Group            string `json:"group"`
	Value            string `json:"value"`          // in force, as it would be written; "set" for a secret
	Default          string `json:"default"`        // as it would be written, or in words
	Unit             string `json:"unit,omitempty"` // "duration" where the value has its own
	Source           Source `json:"source"`
	File             string `json:"file,omitempty"` // with source "file", and the line in it
	Line             int    `json:"line,omitempty"`
	Reloadable       bool   `json:"reloadable"`
	ChangedSinceBoot bool   `json:"changedSinceBoot"`
	// AfterRestart is what a reload found, and only a restart applies; absent where that is the value in force.
	AfterRestart *string `json:"afterRestart,omitempty"`
	Help         string  `json:"help"`
}

// List returns all settings in the order of their declaration.
func (l *Loaded) List() []Setting {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Setting, len(declared))
	for i := range declared {
		d := &declared[i]
		list[i] = Setting{
			Name: d.name, Variable: d.variable, Group: d.group, Unit: d.unit, Help: d.help, Reloadable: d.reload,
			Value: d.show(d.in(&l.now.settings)), Default: d.def,
			Source: l.now.origins[d.name].Source, File: l.now.origins[d.name].File, Line: l.now.origins[d.name].Line,
			ChangedSinceBoot: d.differs(&l.now.settings, &l.boot),
		}
		if d.auto != "" {
			list[i].Default = d.auto
		}
		if next, is := l.waiting[d.name]; is {
			list[i].AfterRestart = &next
		}
	}
	return list
}

// differs compares by text, which is what a value is made from.
func (d *declaration) differs(a, b *Settings) bool { return encode(d.in(a)) != encode(d.in(b)) }
