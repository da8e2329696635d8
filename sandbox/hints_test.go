package sandbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

// TestHints pins the texts that tell a program what to use here.
func TestHints(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	const noPackages = "no packages are installed here; send it as one of the program's modules"
	for specifier, hint := range map[string]string{
		"node:fs": "there is no file system here: return data as the result, or call a tool that reads or writes files", "fs": "there is no file system here: return data as the result, or call a tool that reads or writes files",
		"fs/promises": "there is no file system here: return data as the result, or call a tool that reads or writes files", "node:path": "join strings with \"/\", or use new URL(relative, base).pathname",
		"crypto": "use the global crypto: crypto.subtle, crypto.getRandomValues, crypto.randomUUID", "node:buffer": "use Uint8Array with TextEncoder and TextDecoder; Uint8Array.fromBase64, toBase64, fromHex and toHex do the encodings",
		"http": "use fetch, which is a global", "node:https": "use fetch, which is a global", "axios": "use fetch, which is a global", "node-fetch": "use fetch, which is a global",
		"lodash": "use the methods of Array, Object, Map and Set: map, filter, reduce, Object.groupBy, structuredClone, …", "lodash/groupBy": "use the methods of Array, Object, Map and Set: map, filter, reduce, Object.groupBy, structuredClone, …",
		"moment": "use Date and Intl.DateTimeFormat, Intl.RelativeTimeFormat", "uuid": "use crypto.randomUUID()", "child_process": "there are no processes here: call a tool that does the work",
		"node:diagnostics_channel": "Node's modules are not here; the globals are those of the web platform", "https://esm.sh/lodash": "modules are not loaded from the network; send it as one of the program's modules",
		"npm:lodash": "modules are not loaded from the network; send it as one of the program's modules", "left-pad": noPackages, "@scope/name": noPackages,
	} {
		want := fmt.Sprintf("cannot find module %q imported from \"main.js\": %s", specifier, hint)
		for form, code := range map[string]string{"static": "import x from %q; return x", "dynamic": "await import(%q)"} {
			e := p.run(job{code: fmt.Sprintf(code, specifier)})
			if e.err == nil || e.err.Message != want || e.err.Name != "TypeError" {
				t.Errorf("%s %s: %s", form, specifier, textOf(e))
			}
			if form == "static" && e.err.Type != protocol.Module {
				t.Errorf("%s: %s", specifier, e.err.Type)
			}
		}
		e := p.run(job{code: "import x from 'c'; return x", modules: mods("c", "commonjs", fmt.Sprintf("require(%q)", specifier))})
		if e.err == nil || !strings.HasSuffix(e.err.Message, hint) {
			t.Errorf("require %s: %s", specifier, textOf(e))
		}
	}
	if e := p.run(job{code: "import './gone.js'"}); e.err == nil || e.err.Message != `cannot find module "./gone.js" imported from "main.js"` {
		t.Error(textOf(e))
	}
}

// TestHintsForGlobals: names of other runtimes are not there, and what throws says what to use.
func TestHintsForGlobals(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for name, hint := range map[string]string{
		"process": "use the input of the program for configuration", "input": "the input of the program is the argument of its function", "Buffer": "use Uint8Array with TextEncoder and TextDecoder", "require": "use import, or await import(…)",
		"module": "return the value, or use export default", "exports": "return the value, or use export", "__dirname": "there is no file system here", "__filename": "use import.meta.url", "global": "use globalThis",
		"setImmediate": "use setTimeout(callback, 0)", "clearImmediate": "use setTimeout and clearTimeout", "XMLHttpRequest": "use fetch", "localStorage": "nothing is kept between executions", "sessionStorage": "nothing is kept between executions",
		"document": "there is no page and no DOM here", "window": "use globalThis", "alert": "use console.log", "prompt": "there is nobody to ask", "confirm": "there is nobody to ask", "Deno": "use the globals of the web platform; there is no Deno", "Bun": "use the globals of the web platform; there is no Bun",
		"WebSocket": "there are no sockets here", "Worker": "there is one thread", "importScripts": "use import",
	} {
		want := name + " is not defined: " + hint
		for _, code := range []string{name + ".x", "return " + name, "async () => " + name + "()", "export default () => new " + name + "()", "const f = () => { " + name + " }; await (async () => f())()"} {
			e := p.run(job{code: code})
			if e.err == nil || e.err.Type != protocol.Exception || e.err.Name != "ReferenceError" || !strings.HasPrefix(e.err.Message, want) || !strings.HasPrefix(e.err.Stack, "ReferenceError: "+want) {
				t.Errorf("%s: %s\n%v", code, textOf(e), e.err)
			}
		}
		e := p.run(job{code: fmt.Sprintf(`const at = {}; try { %[1]s } catch (e) { at.log = e; console.log(e) }
const f = async () => %[1]s; let message; try { await f() } catch (e) { message = e.message }
return [typeof %[1]s, %[1]q in globalThis, globalThis.%[1]s, Object.hasOwn(globalThis, %[1]q), message.startsWith(%[2]q), at.log instanceof ReferenceError]`, name, want)})
		if e.value != `["undefined",false,{"@undefined":true},false,true,true]` || len(e.logs) != 1 || !strings.HasPrefix(e.logs[0], "log ReferenceError: "+want) {
			t.Errorf("%s: %s, logs %q", name, textOf(e), e.logs)
		}
	}
	if e := p.run(job{code: "nobodyKnowsThis"}); e.err == nil || e.err.Message != "nobodyKnowsThis is not defined" {
		t.Error(textOf(e))
	}
	if e := p.run(job{code: "globalThis.process = { env: { A: 1 } }; return process.env.A"}); e.value != "1" {
		t.Error(textOf(e))
	}
}
