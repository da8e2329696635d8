package sandbox

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"path"
	"strings"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
	"github.com/executord/executord/sandbox/v8"
)

// graph resolves specifiers among the modules of one execution, the same for import and for require. Only the loop's
// goroutine uses it.
type graph struct {
	modules map[string]worker.Module
	entry   string                                    // name of the submitted text
	exports func(code string) (*commonExports, error) // what a CommonJS text exports
	erase   func(key, code string) (string, error)    // TypeScript to JavaScript
	fault   error                                     // why a module could not be read
	sources map[string]string                         // submitted texts of the modules in use, by file name in stacks
}

// commonExports is what the analyzer finds in a CommonJS text.
type commonExports struct {
	Exports   []string `json:"exports"`
	Reexports []string `json:"reexports"`
}

func newGraph(entry string, modules []worker.Module) *graph {
	g := &graph{modules: make(map[string]worker.Module, len(modules)), entry: entry, sources: map[string]string{}}
	for _, m := range modules {
		g.modules[normal(m.Specifier)] = m
	}
	return g
}

// scheme is that of the URLs which modules have: see import.meta.url in sandbox/v8.
const scheme = "executor:///"

// normal gives "./a/b.js", "a/b.js", "/a/b.js" and "executor:///a/b.js" one name.
func normal(specifier string) string {
	if rest, ok := strings.CutPrefix(specifier, scheme); ok {
		if plain, err := url.PathUnescape(rest); err == nil {
			specifier = "/" + plain
		}
	}
	if specifier == "" || strings.Contains(specifier, ":") {
		return specifier
	}
	return strings.TrimPrefix(path.Clean("/"+specifier), "/")
}

func isRelative(specifier string) bool {
	return specifier == "." || specifier == ".." || strings.HasPrefix(specifier, "./") || strings.HasPrefix(specifier, "../")
}

// locate gives the name that a specifier has in the module referrer.
func locate(specifier, referrer string) string {
	if !isRelative(specifier) {
		return normal(specifier)
	}
	if base, err := url.Parse(referrer); err == nil && base.Scheme != "" && base.Host != "" {
		if u, err := base.Parse(specifier); err == nil {
			return u.String()
		}
	}
	return normal(path.Join("/", path.Dir("/"+referrer), specifier))
}

// endings are what a specifier may leave away, as bundlers and Node's require have it. The exact name always wins.
var endings = []string{"", ".js", ".mjs", ".cjs", ".ts", ".mts", ".json", "/index.js", "/index.mjs", "/index.cjs", "/index.ts"}

// written are the endings by which TypeScript lets a module be imported under the name it will have when compiled.
var written = [][2]string{{".js", ".ts"}, {".mjs", ".mts"}}

// find returns the name of the module that is meant.
func (g *graph) find(name string) (string, bool) {
	for _, e := range endings {
		if key := strings.TrimPrefix(name+e, "/"); g.has(key) {
			return key, true
		}
	}
	for _, w := range written {
		if stem, ok := strings.CutSuffix(name, w[0]); ok && g.has(stem+w[1]) {
			return stem + w[1], true
		}
	}
	return "", false
}

func (g *graph) has(key string) bool {
	_, ok := g.modules[key]
	return ok
}

// resolve finds the module that referrer imports by specifier. Relative specifiers are relative to the referrer; all
// others name a module of the request.
func (g *graph) resolve(specifier, referrer, typ string) (v8.ModuleText, error) {
	key, ok := g.find(locate(specifier, referrer))
	if !ok {
		return v8.ModuleText{}, errors.New(missing(specifier, referrer))
	}
	m := g.modules[key]
	if is := protocol.ModuleType(m.Type); typ != "" && typ != m.Type {
		return v8.ModuleText{}, fmt.Errorf("cannot import module %q as type %q: it is of type %q", key, typ, is)
	}
	t, err := g.text(key, m)
	if key == g.entry {
		t.Key = "./" + key // in stacks the plain name is that of the submitted text
	}
	if m.Type != string(protocol.ModuleBytes) {
		g.sources[t.Key] = string(m.Source)
	}
	return t, err
}

var kinds = map[protocol.ModuleType]v8.ModuleKind{
	protocol.ModuleESM: v8.ModuleESM, protocol.ModuleJSON: v8.ModuleJSON, protocol.ModuleText: v8.ModulePlain, protocol.ModuleBytes: v8.ModuleBytes,
	protocol.ModuleCommonJS: v8.ModuleCommonJS,
}

// moduleBounds are those of a JSON module.
var moduleBounds = protocol.Bounds{Bytes: protocol.MaxCodeBytes, Depth: protocol.MaxDepth, Nodes: math.MaxInt32}

func (g *graph) text(key string, m worker.Module) (v8.ModuleText, error) {
	kind, ok := kinds[protocol.ModuleType(m.Type)]
	if !ok {
		return v8.ModuleText{}, fmt.Errorf("cannot import module %q: there is no module type %q", key, m.Type)
	}
	t := v8.ModuleText{Kind: kind, Key: key, Source: string(m.Source)}
	switch kind {
	case v8.ModuleJSON:
		t.Source = strings.TrimPrefix(t.Source, "\ufeff") // HTML, 8.1.4.2 "fetch a single module script" decodes without it
		if err := (*protocol.TextError)(nil); errors.As(protocol.Check([]byte(t.Source), moduleBounds), &err) {
			return t, fmt.Errorf("cannot read module %q as JSON: %s at byte %d", key, err.Reason, err.Offset)
		}
	case v8.ModuleESM:
		if isTypeScript(key) {
			var err error
			t.Source, err = g.erase(key, t.Source)
			return t, err
		}
	case v8.ModuleCommonJS:
		t.Names = g.names(key, t.Source, map[string]bool{})
	}
	return t, nil
}

func isTypeScript(key string) bool {
	return strings.HasSuffix(key, ".ts") || strings.HasSuffix(key, ".mts")
}

// maxReexports bounds how many modules are read for the names of one.
const maxReexports = 64

// names are the exports that a CommonJS text has beside the default one, those of modules that it hands on included.
func (g *graph) names(key, code string, seen map[string]bool) []string {
	if seen[key] || len(seen) >= maxReexports {
		return nil
	}
	seen[key] = true
	found, err := g.exports(code)
	if err != nil {
		return nil
	}
	var names []string
	known := map[string]bool{"default": true}
	add := func(list []string) {
		for _, name := range list {
			if !known[name] && !strings.ContainsAny(name, "\n\r") {
				known[name] = true
				names = append(names, name)
			}
		}
	}
	add(found.Exports)
	for _, specifier := range found.Reexports {
		if next, ok := g.find(locate(specifier, key)); ok && g.modules[next].Type == string(protocol.ModuleCommonJS) {
			add(g.names(next, string(g.modules[next].Source), seen))
		}
	}
	return names
}
