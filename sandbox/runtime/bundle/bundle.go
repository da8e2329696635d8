// Package main bundles the JavaScript of the sandbox: the library of the guest's global, its warm-up script and the
// analyzer of entry forms. `go run ./sandbox/runtime/bundle` writes them, minified, to sandbox/runtime/dist, from where
// sandbox/runtime embeds them. Every build target runs it first. It reads the folder it is in and its npm packages and
// writes nothing but dist and node_modules. One goroutine; esbuild uses its own.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// A target is one file of dist.
type target struct {
	entry  string // relative to sandbox/runtime
	output string // in dist
	value  bool   // the script's completion value is the module's default export
	part   bool   // the default export is a function of the core, whose intrinsics stand for the module primordials.js
}

var fixed = []target{
	{"src/index.js", "library.js", true, false},
	{"src/warm.js", "warm.js", false, false},
	{"analyze/index.js", "analyzer.js", true, false},
	{"analyze/plugin.js", "typescript.js", true, false},
}

// allTargets adds the parts of the library, and the scripts that warm them.
func allTargets(root string) ([]target, error) {
	found, err := filepath.Glob(filepath.Join(root, "src", "parts", "*"))
	if err != nil {
		return nil, err
	}
	all := append([]target(nil), fixed...)
	for _, path := range found {
		name, script := strings.CutSuffix(filepath.Base(path), ".js")
		entry := "src/parts/" + filepath.Base(path)
		if !script {
			entry += "/index.js"
		}
		switch {
		case name == "index":
		case strings.HasSuffix(name, ".warm"):
			all = append(all, target{entry, "parts/" + name + ".js", false, false})
		default:
			all = append(all, target{entry, "parts/" + name + ".js", true, true})
		}
	}
	return all, nil
}

// build returns the text of t. The result is a classic script that adds no name to the global.
func build(root string, t target) (string, error) {
	plugins := []api.Plugin{allIntrinsics(root)}
	if t.part {
		plugins = []api.Plugin{coreIntrinsics}
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir:     root,
		EntryPoints:       []string{t.entry},
		Bundle:            true,
		Format:            api.FormatESModule,
		Platform:          api.PlatformNeutral,
		MainFields:        []string{"module", "main"},
		Target:            api.ESNext,
		Charset:           api.CharsetASCII,
		LegalComments:     api.LegalCommentsNone,
		MinifyWhitespace:  true,
		MinifyIdentifiers: !t.part, // names of classes show in messages
		MinifySyntax:      true,
		TreeShaking:       api.TreeShakingTrue,
		LogLevel:          api.LogLevelSilent,
		Plugins:           plugins,
	})
	if len(result.Errors) > 0 {
		lines := api.FormatMessages(result.Errors, api.FormatMessagesOptions{})
		return "", errors.New("cannot bundle " + t.entry + ": " + strings.Join(lines, ""))
	}
	return asScript(string(result.OutputFiles[0].Contents), t)
}

// coreName is the variable by which the modules of a part reach the core.
const coreName = "__core"

// coreIntrinsics gives the modules of a part the intrinsics that the core took in time: a part is loaded when the guest
// may already have changed the originals.
var coreIntrinsics = api.Plugin{
	Name: "core-intrinsics",
	Setup: func(b api.PluginBuild) {
		b.OnLoad(api.OnLoadOptions{Filter: `[/\\]primordials\.js$`}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
			names, err := exportsOf(args.Path)
			if err != nil {
				return api.OnLoadResult{}, err
			}
			text := "export const {" + strings.Join(names, ",") + "} = " + coreName + ";"
			return api.OnLoadResult{Contents: &text}, nil
		})
	},
}

// allIntrinsics is the module "executor:intrinsics", whose one export is an object of all that primordials.js exports. A
// namespace object would have a function for each.
func allIntrinsics(root string) api.Plugin {
	const name = "executor:intrinsics"
	source := filepath.Join(root, "src")
	return api.Plugin{Name: "all-intrinsics", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: "^" + name + "$"}, func(api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: name, Namespace: "executor"}, nil
		})
		b.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: "executor"}, func(api.OnLoadArgs) (api.OnLoadResult, error) {
			names, err := exportsOf(filepath.Join(source, "primordials.js"))
			if err != nil {
				return api.OnLoadResult{}, err
			}
			list := "{" + strings.Join(names, ",") + "}"
			text := "import " + list + " from './primordials.js'; export const intrinsics = " + list + ";"
			return api.OnLoadResult{Contents: &text, ResolveDir: source}, nil
		})
	}}
}

// exportsOf lists the names that a module without imports exports.
func exportsOf(path string) ([]string, error) {
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{path}, Bundle: true, Format: api.FormatESModule, Metafile: true, Outdir: "none",
		LogLevel: api.LogLevelSilent,
	})
	var meta struct {
		Outputs map[string]struct{ Exports []string }
	}
	if err := json.Unmarshal([]byte(result.Metafile), &meta); err != nil {
		return nil, fmt.Errorf("cannot list the exports of %s: %w", path, err)
	}
	for _, output := range meta.Outputs {
		return output.Exports, nil
	}
	return nil, errors.New("cannot list the exports of " + path)
}

var exportClause = regexp.MustCompile(`export\s*\{\s*([\w$]+) as default\s*\};?\s*$`)

// asScript turns the text of an ES module into a function call: its own scope, strict mode, and the default export as
// the value.
func asScript(module string, t target) (string, error) {
	if !t.value {
		if strings.Contains(module, "export{") {
			return "", errors.New("cannot use " + t.entry + ": it must export nothing")
		}
		return "(()=>{\"use strict\";" + strings.TrimSpace(module) + "})();\n", nil
	}
	at := exportClause.FindStringSubmatchIndex(module)
	if at == nil {
		return "", errors.New("cannot use " + t.entry + ": it must have a default export and no other")
	}
	body, name := module[:at[0]], module[at[2]:at[3]]
	if t.part {
		return "(()=>{\"use strict\";return " + coreName + "=>{" + body + "return " + name + "(" + coreName + ")}})();\n", nil
	}
	return "(()=>{\"use strict\";" + body + "return " + name + "})();\n", nil
}

// run bundles everything into dist.
func run(root string) error {
	if err := installPackages(root); err != nil {
		return err
	}
	dist := filepath.Join(root, "dist")
	if err := os.MkdirAll(filepath.Join(dist, "parts"), 0o755); err != nil {
		return err
	}
	targets, err := allTargets(root)
	if err != nil {
		return err
	}
	if err := removeOld(filepath.Join(dist, "parts"), targets); err != nil {
		return err
	}
	for _, t := range targets {
		text, err := build(root, t)
		if err != nil {
			return err
		}
		if err := writeChanged(filepath.Join(dist, t.output), text); err != nil {
			return err
		}
	}
	return nil
}

// noPart is there so that the folder can be embedded when it has no part.
const noPart = "none"

// removeOld removes parts whose source is gone.
func removeOld(dir string, targets []target) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		known := slices.ContainsFunc(targets, func(t target) bool { return t.output == "parts/"+f.Name() })
		if known || f.Name() == noPart {
			continue
		}
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	return writeChanged(filepath.Join(dir, noPart), "")
}

// writeChanged leaves a file alone that is up to date, so that the build cache stays valid.
func writeChanged(path, text string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return nil
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

func main() {
	root, err := findRoot()
	if err == nil {
		err = run(root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}
