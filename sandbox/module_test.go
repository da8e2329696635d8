package sandbox_test

import (
	"strings"
	"testing"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/worker"
)

// mods makes modules of specifier, type and source, three at a time.
func mods(parts ...string) []worker.Module {
	var list []worker.Module
	for i := 0; i+2 < len(parts); i += 3 {
		list = append(list, worker.Module{Specifier: parts[i], Type: parts[i+1], Source: []byte(parts[i+2])})
	}
	return list
}

func TestModules(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for _, c := range []struct {
		name, code string
		modules    []worker.Module
		want       string // value, or error: type name: message at file:line:column
	}{
		// ---- specifiers
		{"bare, relative, absolute and URL are one module", "import a from 'm.js'; import b from './m.js'; import c from '/m.js'; const d = await import('executor:///m.js'); return [a === b, b === c, c === d.default]", mods("m.js", "module", "export default {}"), "[true,true,true]"},
		{"relative to the importer", "import x from 'lib/deep/a.js'; return x", mods("lib/deep/a.js", "module", "import b from '../b.js'; export default b", "lib/b.js", "module", "export { default } from './c.js'", "lib/c.js", "module", "export default 'c'"), `"c"`},
		{"package and subpath", "import a from 'pkg'; import b from 'pkg/sub'; import c from '@s/p/x.js'; return [a, b, c]", mods("pkg", "module", "export default 1", "pkg/sub.js", "module", "export default 2", "@s/p/x.js", "module", "export default 3"), "[1,2,3]"},
		{"index of a folder and left away endings", "import a from './lib'; import b from './b'; import c from './c'; return [a, b, c.k]", mods("lib/index.js", "module", "export default 1", "b.mjs", "module", "export default 2", "c.json", "json", `{"k":3}`), "[1,2,3]"},
		{"the exact name wins", "import a from './x'; return a", mods("x", "module", "export default 'exact'", "x.js", "module", "export default 'ending'"), `"exact"`},
		{"URL names and what is relative to them", "import a from 'https://example.com/lib/a.js'; return a", mods("https://example.com/lib/a.js", "module", "export { default } from './b.js'", "https://example.com/lib/b.js", "module", "export default 'b'"), `"b"`},
		{"a module may be named as Node's", "import fs from 'node:fs'; return fs.readFileSync()", mods("node:fs", "module", "export default { readFileSync: () => 'mine' }"), `"mine"`},
		{"a module named as the entry", "import a from './main.js'; return a", mods("main.js", "module", "export default 'module'"), `"module"`},

		// ---- types and attributes
		{"json, text and bytes", "import j from 'j' with { type: 'json' }; import t from 't' with { type: 'text' }; import b from 'b' with { type: 'bytes' }; return [j, t, b]", mods("j", "json", `{"a":[1]}`, "t", "text", "text ☃", "b", "bytes", "\x00\xff"), `[{"a":[1]},"text ☃",{"@bytes":"AP8="}]`},
		{"without attributes", "import j from 'j'; import t from 't'; return [j, t]", mods("j", "json", `[1]`, "t", "text", "x"), `[[1],"x"]`},
		{"wrong type", "import j from 'j' with { type: 'text' }; return j", mods("j", "json", `1`), `module TypeError: cannot import module "j" as type "text": it is of type "json" at main.js:1:15`},
		{"unknown attribute", "\nimport j from 'j' with { kind: 'json' }; return j", mods("j", "json", `1`), `module TypeError: the import attribute 'kind' is not supported; only 'type' is at main.js:2:15`},
		{"broken json", "import j from 'j'; return j", mods("j", "json", `{`), `module TypeError: cannot read module "j" as JSON: the text ends too early at byte 1 at main.js:1:15`},
		{"broken json, of a module", "import 'm'; return 1", mods("m", "module", "import j from 'j'", "j", "json", `[1,]`), `module TypeError: cannot read module "j" as JSON: unexpected ']' at byte 3 at m:1:15`},
		{"json with a number of no bound", "import j from 'j'; return j", mods("j", "json", `1e999`), `{"@number":"Infinity"}`},
		{"json with a byte order mark", "import j from 'j'; return j", mods("j", "json", "\ufeff{}"), `{}`},
		{"dynamic with attributes", "return (await import('j', { with: { type: 'json' } })).default", mods("j", "json", `{"a":1}`), `{"a":1}`},

		// ---- semantics
		{"live bindings", "import { n, inc } from 'c'; const before = n; inc(); return [before, n]", mods("c", "module", "export let n = 1; export const inc = () => { n++ }"), "[1,2]"},
		{"cycle", "import { a } from 'a'; return a()", mods("a", "module", "import { b } from 'b'; export const a = () => b() + 1; export const one = 1", "b", "module", "import { one } from 'a'; export const b = () => one + 1"), "3"},
		{"top-level await", "import { v } from 't'; return v", mods("t", "module", "export const v = await new Promise(r => setTimeout(() => r(5), 5))"), "5"},
		{"dynamic import in a function", "return async => 1, (await import('./m.js')).x", mods("m.js", "module", "export const x = 4"), "4"},
		{"import in a function-form program", "import { x } from 'm';\nasync (input) => x + 1", mods("m", "module", "export const x = 4"), "5"},
		{"evaluated once", "await import('a'); await import('b'); await import('a'); return globalThis.n", mods("a", "module", "import 'b'; globalThis.n = (globalThis.n ?? 0) + 1", "b", "module", "globalThis.n = (globalThis.n ?? 0) + 10"), "11"},
		{"import.meta", "import u from 'lib/a b.js'; return [import.meta.url, import.meta.resolve('./lib/a b.js'), ...u]", mods("lib/a b.js", "module", "export default [import.meta.url, import.meta.resolve('../x.js'), Object.getPrototypeOf(import.meta)]", "x.js", "module", ""), `["executor:///main.js","executor:///lib/a%20b.js","executor:///lib/a%20b.js","executor:///x.js",null]`},
		{"import of what import.meta.resolve says", "return (await import(import.meta.resolve('./a b.js'))).default", mods("a b.js", "module", "export default 1"), "1"},

		// ---- CommonJS
		{"default is module.exports", "import c from 'c'; return [c.a, c.__esModule]", mods("c", "commonjs", "exports.__esModule = true; exports.default = 2; exports.a = 1"), "[1,true]"},
		{"named exports", "import c, { a, b, d } from 'c'; return [a, b, d, Object.keys(c)]", mods("c", "commonjs", "exports.a = 1; Object.defineProperty(exports, 'b', { enumerable: true, value: 2 }); module.exports.d = 3"), `[1,2,3,["a","b","d"]]`},
		{"named exports of an object literal", "import { a, b } from 'c'; return [a, b]", mods("c", "commonjs", "const a = 1, b = 2; module.exports = { a, b }"), "[1,2]"},
		{"named exports handed on", "import { a } from 'c'; return a", mods("c", "commonjs", "module.exports = require('./d')", "d", "commonjs", "exports.a = 7"), "7"},
		{"a function", "import c from 'c'; return [typeof c, c()]", mods("c", "commonjs", "module.exports = function () { return 5 }"), `["function",5]`},
		{"wrapper", "import c from 'lib/c.cjs'; return c", mods("lib/c.cjs", "commonjs", "exports.v = [__filename, __dirname, module.id, module.filename, module.loaded, this === exports, module.exports === exports, typeof require, require.resolve('./c'), arguments.length]; "), `{"v":["/lib/c.cjs","/lib","/lib/c.cjs","/lib/c.cjs",false,true,true,"function","/lib/c.cjs",5]}`},
		{"the text cannot leave its wrapper", "import c from 'c'; return c", mods("c", "commonjs", "}); globalThis.out = 1; (function () {"), `syntax SyntaxError: Unexpected token '}' at c:1:1`},
		{"require of every type", "import c from 'c'; return c", mods("c", "commonjs", "const m = require('./m'); module.exports = [require('./j'), require('t'), require('./b.bin'), m.default, m.x, require('./j') === require('./j')]", "j", "json", `{"k":1}`, "t", "text", "tt", "b.bin", "bytes", "\x01", "m", "module", "export default 3; export const x = 4"), `[{"k":1},"tt",{"@bytes":"AQ=="},3,4,true]`},
		{"require and import give one value", "import j from 'j'; import c from 'c'; return j === c", mods("j", "json", "{}", "c", "commonjs", "module.exports = require('j')"), "true"},
		{"require of a module with top-level await", "import c from 'c'; return c", mods("c", "commonjs", "try { require('m') } catch (e) { module.exports = [e.code, e.message] }", "m", "module", "await 1"), `["ERR_REQUIRE_ASYNC_MODULE","cannot require \"m\": it, or a module that it imports, uses top-level await; use await import(\"m\") instead"]`},
		{"require cache", "import c from 'c'; return c", mods("c", "commonjs", "const a = require('./n'), b = require('./n'); delete require.cache[require.resolve('./n')]; module.exports = [a === b, require('./n') === a, globalThis.n, Object.keys(require.cache)]", "n", "commonjs", "globalThis.n = (globalThis.n ?? 0) + 1; module.exports = {}"), `[true,false,2,["/c","/n"]]`},
		{"cycle of require", "import a from 'a'; return [a.done, a.sawB]", mods("a", "commonjs", "exports.done = false; const b = require('./b'); exports.sawB = b.sawA; exports.done = true", "b", "commonjs", "exports.sawA = require('./a').done"), "[true,false]"},
		{"a throwing module is tried again", "import c from 'c'; return c", mods("c", "commonjs", "let n = 0; for (let i = 0; i < 2; i++) try { require('./t') } catch (e) { n++ } module.exports = [n, globalThis.t]", "t", "commonjs", "globalThis.t = (globalThis.t ?? 0) + 1; throw new Error('t')"), "[2,2]"},
		{"sloppy mode", "import c from 'c'; return c", mods("c", "commonjs", "module.exports = (function () { return this !== undefined })()"), "true"},
		{"dynamic import from CommonJS", "import c from 'lib/c'; return await c()", mods("lib/c", "commonjs", "module.exports = async () => (await import('./m')).x", "lib/m", "module", "export const x = 9"), "9"},
		{"require of what is missing", "import c from 'c'; return c", mods("c", "commonjs", "try { require('nope') } catch (e) { module.exports = [e.code, e.message.startsWith('cannot find module \"nope\"')] }"), `["MODULE_NOT_FOUND",true]`},
		{"require of a failing ES module", "import c from 'c'; return c", mods("c", "commonjs", "try { require('m') } catch (e) { module.exports = e.message }", "m", "module", "throw new Error('from m')"), `"from m"`},

		// ---- errors
		{"missing", "const a = 1;\nimport x from 'nope';\nreturn x", nil, `module TypeError: cannot find module "nope" imported from "main.js": no packages are installed here; send it as one of the program's modules at main.js:2:15`},
		{"missing in a module", "import 'a'", mods("a", "module", "\n\n  import './b.js'"), `module TypeError: cannot find module "./b.js" imported from "a" at a:3:10`},
		{"missing export", "import { y } from 'a'; return y", mods("a", "module", "export const x = 1"), `module SyntaxError: The requested module 'a' does not provide an export named 'y' at main.js:1:10`},
		{"syntax error in a module", "import 'a'", mods("a", "module", "\nconst = 1"), `syntax SyntaxError: Unexpected token '=' at a:2:7`},
		{"error in a module", "import 'lib/a.js'", mods("lib/a.js", "module", "\n  throw new RangeError('r')"), `exception RangeError: r at lib/a.js:2:9`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := p.run(job{code: c.code, modules: c.modules})
			if got := textOf(e); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// textOf writes an end on one line.
func textOf(e end) string {
	if e.err == nil {
		return e.value
	}
	text := string(e.err.Type) + " " + e.err.Name + ": " + e.err.Message
	if p := e.err.Position; p != nil {
		text += " at " + p.File + ":" + position(e.err)
	}
	return text
}

// TestSourceLinesOfModules looks at the source lines of errors in modules.
func TestSourceLinesOfModules(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for _, c := range []struct {
		name    string
		modules []worker.Module
		typ     protocol.Type
		line    string
	}{
		{"thrown", mods("a", "module", "// 1\n  throw new Error('x'); // here"), protocol.Exception, "  throw new Error('x'); // here"},
		{"thrown by CommonJS", mods("a", "commonjs", "// 1\n  null.x"), protocol.Exception, "  null.x"},
		{"syntax", mods("a", "module", "// 1\n  const = 2"), protocol.Syntax, "  const = 2"},
		{"missing import", mods("a", "module", "// 1\n  import 'gone'"), protocol.Module, "  import 'gone'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := p.run(job{code: "import 'a'", modules: c.modules})
			if e.err == nil || e.err.Type != c.typ || e.err.Position == nil || e.err.Position.SourceLine != c.line {
				t.Fatalf("%v, %+v", e.err, e.err.Position)
			}
			if strings.Contains(e.err.Stack, "executor:library") {
				t.Errorf("stack %s", e.err.Stack)
			}
		})
	}
}
