package sandbox_test

import (
	"strings"
	"testing"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/worker"
)

// TestManyRejections: what is not reported is said to be so.
func TestManyRejections(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	wide := func(l *worker.Limits) { l.LogLines = 5000 }
	const marker = "warn more than 1000 promises were rejected at once with nobody to handle it: the others are not reported"
	count := func(logs []string, start string) (n int) {
		for _, l := range logs {
			if strings.HasPrefix(l, start) {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		name, code       string
		reports, markers int
	}{
		{"as many as are kept", "for (let i = 0; i < 1000; i++) Promise.reject(i); return 1", 1000, 0},
		{"one more", "for (let i = 0; i < 1001; i++) Promise.reject(i); return 1", 1000, 1},
		{"in two turns", "for (let k = 0; k < 2; k++) { for (let i = 0; i < 1500; i++) Promise.reject(i); await new Promise((r) => setTimeout(r, 1)) } return 1", 2000, 2},
		{"handled at once", "for (let i = 0; i < 3000; i++) Promise.reject(i).catch(() => {}); return 1", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := p.run(job{code: c.code, limits: wide})
			if e.value != "1" || count(e.logs, "error Unhandled rejection: ") != c.reports || count(e.logs, marker) != c.markers {
				t.Errorf("%s, %d lines, %d reports, %d markers", textOf(e), len(e.logs), count(e.logs, "error Unhandled rejection: "), count(e.logs, marker))
			}
		})
	}
}

// TestSourceURL: a comment can name a program's text otherwise, but neither hide its frames nor move its places.
func TestSourceURL(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for _, name := range []string{"executor:library", "other.js"} {
		comment := "\n//# sourceURL=" + name
		for _, c := range []struct {
			name  string
			job   job
			stack string
			line  int
		}{
			{"script", job{code: "const f = () => {\n  throw new Error('x')\n};\nf()" + comment}, "Error: x\n    at f (main.js:2:9)\n    at main.js:4:1", 2},
			{"function", job{code: "() => {\n  throw new Error('x')\n}" + comment}, "Error: x\n    at main.js:2:9", 2},
			{"TypeScript", job{code: "type A = {\n  b: number\n};\nthrow new Error('x')" + comment, typed: true}, "Error: x\n    at main.js:4:7", 4},
			{"module", job{code: "import 'm'", modules: mods("m", "module", "\nthrow new Error('x')"+comment)}, "Error: x\n    at m:2:7", 2},
			{"CommonJS", job{code: "import 'm.cjs'", modules: mods("m.cjs", "commonjs", "\nthrow new Error('x')"+comment)}, "Error: x\n    at Object.<anonymous> (m.cjs:2:7)", 2},
			{"syntax", job{code: "let a = 1;\nlet b = ;" + comment}, "", 2},
		} {
			t.Run(c.name+" named "+name, func(t *testing.T) {
				e := p.run(c.job)
				if e.err == nil || !strings.HasPrefix(e.err.Stack, c.stack) || e.err.Position == nil || e.err.Position.Line != c.line || e.err.Position.File == name {
					t.Errorf("%s, position %+v, stack %q", textOf(e), e.err.Position, e.err.Stack)
				}
			})
		}
	}
	t.Run("code from a string", func(t *testing.T) {
		e := p.run(job{code: "eval('\\nthrow new Error(\"x\") //# sourceURL=executor:library')"})
		if e.err == nil || e.err.Type != protocol.Exception || !strings.HasPrefix(e.err.Stack, "Error: x\n    at eval (executor:library:2:7)\n    at main.js:1:1") {
			t.Errorf("%s, stack %q", textOf(e), e.err.Stack)
		}
	})
}
