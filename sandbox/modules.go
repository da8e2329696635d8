package sandbox

import (
	"fmt"
	"path"
	"strings"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
	"github.com/executord/executord/sandbox/v8"
)

// graph resolves specifiers among the modules of one execution.
type graph map[string]worker.Module

func newGraph(modules []worker.Module) graph {
	g := make(graph, len(modules))
	for _, m := range modules {
		g[normal(m.Specifier)] = m
	}
	return g
}

// normal gives "./a/b.js", "a/b.js" and "/a/b.js" one name.
func normal(specifier string) string {
	if specifier == "" || strings.Contains(specifier, ":") {
		return specifier
	}
	return strings.TrimPrefix(path.Clean("/"+specifier), "/")
}

// resolve finds the module that referrer imports by specifier. Relative specifiers are relative to the referrer; all
// others name a module of the request.
func (g graph) resolve(specifier, referrer, typ string) (v8.ModuleText, error) {
	key := normal(specifier)
	if strings.HasPrefix(specifier, "./") || strings.HasPrefix(specifier, "../") {
		key = normal(path.Join("/", path.Dir("/"+referrer), specifier))
	}
	m, ok := g[key]
	if !ok {
		return v8.ModuleText{}, fmt.Errorf("cannot find module %q imported from %q", specifier, referrer)
	}
	return moduleText(key, m, typ)
}

func moduleText(key string, m worker.Module, typ string) (v8.ModuleText, error) {
	is := protocol.ModuleType(m.Type)
	if typ != "" && typ != m.Type {
		return v8.ModuleText{}, fmt.Errorf("cannot import module %q as type %q: it is of type %q", key, typ, m.Type)
	}
	switch is {
	case protocol.ModuleESM:
		return v8.ModuleText{Kind: v8.ModuleESM, Key: key, Source: string(m.Source)}, nil
	case protocol.ModuleJSON:
		return v8.ModuleText{Kind: v8.ModuleJSON, Key: key, Source: string(m.Source)}, nil
	case protocol.ModuleText:
		return v8.ModuleText{Kind: v8.ModulePlain, Key: key, Source: string(m.Source)}, nil
	case protocol.ModuleBytes:
		return v8.ModuleText{Kind: v8.ModuleBytes, Key: key, Source: string(m.Source)}, nil
	}
	return v8.ModuleText{}, fmt.Errorf("cannot import module %q: modules of type %q are not supported yet", key, m.Type)
}
