package settings

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/executord/executord/daemon/pool"
)

// given is what one source says of a setting.
type given struct {
	origin Origin
	texts  []string // of a flag, each that was given; of anything else one
}

// resolved are settings and where each is from, by name.
type resolved struct {
	settings  Settings
	origins   map[string]Origin
	variables map[string]string // of others that the file has
}

// Defaults are the settings where nobody says anything. The worker binary is left to be found.
func Defaults() Settings {
	r := resolved{origins: map[string]Origin{}}
	for i := range declared {
		d := &declared[i]
		r.origins[d.name] = Origin{Source: Default}
		if d.def != "" {
			if reason := d.decode(d.in(&r.settings), []string{d.def}); reason != "" {
				panic(fmt.Sprintf("settings: the default of %s: %s", d.name, reason))
			}
		}
	}
	r.derive()
	return r.settings
}

// resolve takes each setting from the first source that has it, and returns all faults at once, or ErrHelp or ErrVersion.
func resolve(args, environ []string) (*resolved, error) {
	flags, flagFault := parseFlags(args)
	if flagFault == ErrHelp || flagFault == ErrVersion {
		return nil, flagFault
	}
	sources, variables, faults := read(flags, environ)
	r := &resolved{settings: Defaults(), origins: map[string]Origin{}, variables: variables}
	wrong := map[string]bool{}
	for i := range declared {
		d := &declared[i]
		g, ok := sources[d.name]
		if !ok {
			g.origin.Source = Default
		}
		r.origins[d.name] = g.origin
		if !ok {
			continue
		}
		if reason := d.decode(d.in(&r.settings), g.texts); reason != "" {
			wrong[d.name] = true
			faults = append(faults, r.fault(d, strings.Join(g.texts, ","), reason))
		}
	}
	r.derive()
	if flagFault != nil { // then nobody knows what the other flags were to be
		return nil, append(Faults{flagFault}, faults...)
	}
	faults = append(faults, r.check(wrong)...)
	if len(faults) > 0 {
		return nil, faults
	}
	return r, nil
}

func (r *resolved) fault(d *declaration, value, reason string) error {
	if d.secret {
		value = "set"
	}
	return &Fault{Name: d.name, Variable: d.variable, Value: value, Origin: r.origins[d.name], Reason: reason}
}

// byDefault tells that nobody gave the setting.
func (r *resolved) byDefault(name string) bool { return r.origins[name].Source == Default }

// derive sets the defaults that depend on the machine or on other settings.
func (r *resolved) derive() {
	s := &r.settings
	if r.byDefault("workers") {
		s.Workers = pool.Defaults().Workers
	}
	if r.byDefault("queue") {
		s.Queue = min(4*max(s.Workers, 0), int(find("queue").most))
	}
	if r.byDefault("queue-per-caller") {
		s.QueueShare = s.Queue
	}
	if r.byDefault("retained-executions") {
		s.Retained = pool.Defaults().Retained
	}
	if r.byDefault("retained-per-caller") {
		s.RetainedShare = (s.Retained + 1) / 2
	}
	if r.byDefault("allow-group") {
		s.AllowGroup = ifThere(callersGroup)
	}
	if r.byDefault("admin-group") {
		s.AdminGroup = ifThere(operatorsGroup)
	}
	if r.byDefault("admin-listen") {
		s.AdminListen = beside(s.Listen)
	}
	if r.byDefault("max-caller-sessions") {
		s.MaxCallerSessions = s.MaxSessions
	}
	if r.byDefault("max-caller-executions") {
		s.MaxCallerExecutions = min(max(s.MaxSessions, 0)*max(s.MaxSessionExecutions, 0), int(find("max-caller-executions").most))
	}
	r.deriveLimits()
}

// deriveLimits lowers a default that nobody set to a lower maximum.
func (r *resolved) deriveLimits() {
	usual, most := reflect.ValueOf(&r.settings.Default).Elem(), reflect.ValueOf(&r.settings.Max).Elem()
	for i := range usual.NumField() {
		if name := "default-" + usual.Type().Field(i).Tag.Get("name"); r.byDefault(name) {
			usual.Field(i).SetInt(min(usual.Field(i).Int(), most.Field(i).Int()))
		}
	}
}

// read collects what the sources say, by the names of settings.
func read(flags map[string][]string, environ []string) (sources map[string]given, others map[string]string, faults Faults) {
	sources = map[string]given{}
	variables := map[string]string{}
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if _, twice := variables[name]; !twice { // as getenv(3) has it
			variables[name] = value
		}
	}
	for _, d := range declared {
		if texts, ok := flags[d.name]; ok {
			sources[d.name] = given{Origin{Source: Flag}, texts}
		} else if text, ok := variables[d.variable]; ok {
			sources[d.name] = given{Origin{Source: Variable}, []string{text}}
		}
	}
	others, faults = readVariables(sources)
	return sources, others, faults
}

// Names of variables that a file may have.
const (
	ownPrefix       = "EXECUTORD_"
	telemetryPrefix = "OTEL_" // read by the OpenTelemetry SDK from the environment
)

// readVariables adds what the file says that sources name, where they do not say it themselves.
func readVariables(sources map[string]given) (others map[string]string, faults Faults) {
	file, named := sources["settings-file"]
	if !named || file.texts[len(file.texts)-1] == "" {
		return nil, nil
	}
	path := file.texts[len(file.texts)-1]
	list, err := readFile(path)
	if err != nil {
		return nil, Faults{&Fault{"settings-file", find("settings-file").variable, path, file.origin, err.Error()}}
	}
	byVariable, names := map[string]*declaration{}, []string{}
	for i := range declared {
		byVariable[declared[i].variable] = &declared[i]
		names = append(names, declared[i].variable)
	}
	others, own := map[string]string{}, map[string]given{}
	for _, a := range list {
		origin := Origin{File, path, a.line}
		d := byVariable[a.name]
		switch {
		case d == nil && strings.HasPrefix(a.name, telemetryPrefix):
			others[a.name] = a.value
		case d == nil && strings.HasPrefix(a.name, ownPrefix):
			faults = append(faults, fmt.Errorf("%s, %s: there is no such setting%s", a.name, origin, didYouMean(a.name, names)))
		case d == nil:
			faults = append(faults, fmt.Errorf("%s, %s: only variables that begin with %s or %s are read from it", a.name, origin, ownPrefix, telemetryPrefix))
		case d.name == "settings-file":
			faults = append(faults, &Fault{d.name, d.variable, a.value, origin, "a file cannot name another"})
		default:
			own[d.name] = given{origin, []string{a.value}} // the last one counts
		}
	}
	for name, g := range own {
		if _, before := sources[name]; !before {
			sources[name] = g
		}
	}
	return others, faults
}
