package pool

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"maps"
	"slices"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// newExecute words r for a worker, with the limits l in force.
func (p *Pool) newExecute(id uint64, r *executor.Request, l protocol.Limits) (worker.Execute, error) {
	modules, err := newModules(r.Modules)
	if err != nil {
		return worker.Execute{}, err
	}
	m := worker.Execute{
		ID: id, Retain: newRetain(r), Code: r.Code, Name: cmp.Or(r.Name, "main.js"),
		Form:     string(cmp.Or(r.Form, protocol.FormAuto)),
		Language: string(cmp.Or(r.Language, protocol.JavaScript)),
		Network:  string(cmp.Or(r.Network, protocol.NetworkNone)),
		Input:    r.Input, Modules: modules, Providers: newProviders(r.Providers),
		Limits: newLimits(l),
	}
	if n := size(&m); n > worker.DefaultFrameBytes-frameMargin {
		return m, protocol.Errorf(protocol.InvalidParams, "code, input and modules have %d bytes together, more than %d",
			n, worker.DefaultFrameBytes-frameMargin)
	}
	return m, nil
}

func newLimits(l protocol.Limits) worker.Limits {
	return worker.Limits{
		CPU: millis(l.CPUMs), Wall: millis(l.WallMs), Total: millis(l.TotalMs),
		HeapBytes: l.HeapMiB << 20, BufferBytes: l.BufferMiB << 20, SlackBytes: l.SlackMiB << 20,
		StackBytes: l.StackKiB << 10, ResultBytes: l.ResultBytes, MessageBytes: l.MessageBytes,
		ValueDepth: l.ValueDepth, ValueParts: l.ValueParts, LogBytes: l.LogBytes, LogLines: l.LogLines,
		ToolCalls: l.ToolCalls, CallsInFlight: l.ToolCallsInFlight, Fetches: l.Fetches, Timers: l.Timers,
	}
}

// newRetain is what the ids of handles begin with: nobody can guess it. Empty where the request retains nothing.
func newRetain(r *executor.Request) string {
	if r.Retain == nil {
		return ""
	}
	return rand.Text()
}

func newProviders(providers []protocol.Provider) []worker.Provider {
	list := make([]worker.Provider, len(providers))
	for i, p := range providers {
		list[i] = worker.Provider{Name: p.Name, All: p.Tools.Any(), Paths: p.Tools.Paths}
	}
	return list
}

// newModules lists modules by specifier, bytes decoded.
func newModules(modules map[string]protocol.ModuleSource) ([]worker.Module, error) {
	list := make([]worker.Module, 0, len(modules))
	for _, specifier := range slices.Sorted(maps.Keys(modules)) {
		m := modules[specifier]
		source := []byte(m.Source)
		if m.Type == protocol.ModuleBytes {
			var err error
			if source, err = base64.StdEncoding.DecodeString(m.Source); err != nil {
				return nil, protocol.FieldError("modules", "source of %q is not base64", specifier)
			}
		}
		list = append(list, worker.Module{Specifier: specifier, Type: string(cmp.Or(m.Type, protocol.ModuleESM)), Source: source})
	}
	return list, nil
}

// size is about what m takes on the channel; it never says too little by more than frameMargin.
func size(m *worker.Execute) int {
	n := len(m.Code) + len(m.Input)
	for _, x := range m.Modules {
		n += len(x.Specifier) + len(x.Source) + 64
	}
	for _, p := range m.Providers {
		for _, path := range p.Paths {
			for _, name := range path {
				n += len(name) + 8
			}
		}
	}
	return n
}
