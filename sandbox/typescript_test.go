package sandbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/worker"
)

func TestTypeScript(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for _, c := range []struct {
		name, code string
		form       protocol.Form
		input      string
		modules    []worker.Module
		want       string
	}{
		// ---- forms
		{"script", "const n: number = 1;\nn as number", "", "", nil, "1"},
		{"script with return and await", "interface A { n: number }\nconst a: A = await Promise.resolve({ n: 2 });\nif (a.n) { return a.n satisfies number; }\nreturn 0", "", "", nil, "2"},
		{"script that ends in types", "const a = 3;\na!;\ntype T = typeof a;", "", "", nil, "3"},
		{"script with import and return", "import { x, type T } from 'm';\nimport type { U } from 'gone';\nconst t: T = x;\nreturn t", "", "", mods("m", "module", "export const x = 4"), "4"},
		{"unused imports are dropped", "import { T } from 'gone';\nlet t: T | undefined;\nreturn t ?? 1", "", "", nil, "1"},
		{"arrow", "async (input: { n: number }): Promise<number> => input.n", "", `{"n":5}`, nil, "5"},
		{"generic arrow", "<T>(input: T): T => input", "", `"g"`, nil, `"g"`},
		{"function behind types", "type In = { n: number };\ninterface Out { m: number }\nasync ({ n }: In): Promise<Out> => ({ m: n })", "", `{"n":6}`, nil, `{"m":6}`},
		{"function behind types, asked for", "type In = { n: number };\n(x: In) => x.n", protocol.FormFunction, `{"n":6}`, nil, "6"},
		{"function with a type assertion", "((x: number) => x + 1) as (x: number) => number", "", "1", nil, "2"},
		{"anonymous function", "async function (x: number) { return x }", protocol.FormFunction, "7", nil, "7"},
		{"declared function", "function main(x: number): number { return x }", "", "8", nil, "8"},
		{"module", "export interface A { n: number }\nexport default (a: A): number => a.n", "", `{"n":9}`, nil, "9"},
		{"module of types and a value", "export type A = number;\nconst a: A = 10;\nexport default a", "", "", nil, "10"},
		{"JavaScript is TypeScript", "const [a, b] = [1, 2];\nreturn a < b", "", "", nil, "true"},

		// ---- what has meaning at run time
		{"enum", "enum E { A, B = 'b', C = 5, D }\nreturn [E.A, E.B, E.D, E[6]]", "", "", nil, `[0,"b",6,"D"]`},
		{"const enum", "const enum E { A = 3 }\nreturn E.A", "", "", nil, "3"},
		{"namespace", "namespace N { export const a = 1; export namespace M { export const b = a + 1 } }\nconst two: number = N.M.b;\ntwo", "", "", nil, "2"},
		{"parameter properties", "class P { constructor(public x: number, private readonly y = 2) {} sum() { return this.x + this.y } }\nreturn new P(1).sum()", "", "", nil, "3"},
		{"abstract classes and overloads", "abstract class A { abstract f(): number; g() { return this.f() } }\nclass B extends A { override f(): number { return 4 } }\nfunction h(a: string): string; function h(a: number): number; function h(a: any) { return a }\nreturn [new B().g(), h(1)]", "", "", nil, "[4,1]"},
		{"decorators", "const log: string[] = [];\nfunction dec(value: any, context: ClassMethodDecoratorContext) { log.push(String(context.name)); return function (this: any) { return value.call(this) + 1 } }\nclass A { @dec m() { return 1 } }\nreturn [new A().m(), log]", "", "", nil, `[2,["m"]]`},
		{"accessor", "class A { accessor x = 3 }\nreturn new A().x", "", "", nil, "3"},
		{"declare fields and this types", "class A { declare x: number; f(this: A) { return 'x' in this } }\nreturn new A().f()", "", "", nil, "false"},
		{"non-null, optional and definite", "let a!: number; a = 1; const o: { b?: { c: number } } = {};\nreturn [a!, o.b?.c ?? 2]", "", "", nil, "[1,2]"},

		// ---- modules
		{"ts and mts modules", "import { a } from './a.ts'; import { b } from './b.mjs'; import { c } from './c.js'; import { d } from './d'; return [a, b, c, d]", "", "", mods("a.ts", "module", "export const a: number = 1", "b.mts", "module", "export const b = 2 as const", "c.ts", "module", "export type X = 1; export const c = 3", "d.ts", "module", "export enum D { d = 4 }; export const d = D.d"), "[1,2,3,4]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := p.run(job{code: c.code, form: c.form, input: c.input, modules: c.modules, typed: true})
			if got := textOf(e); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	t.Run("JavaScript may import TypeScript", func(t *testing.T) {
		if e := p.run(job{code: "import { a } from 'a.ts'; return a", modules: mods("a.ts", "module", "export const a: number = 1")}); textOf(e) != "1" {
			t.Error(textOf(e))
		}
	})
}

func TestTypeScriptErrors(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for _, c := range []struct {
		name, code string
		modules    []worker.Module
		want, line string
	}{
		{"type that is not closed", "const a: Array<number = [];\nreturn a", nil, "syntax SyntaxError: Unexpected token (read as a script) at main.js:1:23", "const a: Array<number = [];"},
		{"interface without a name", "let a = 1;\ninterface { x: number }", nil, "syntax SyntaxError: 'interface' declarations must be followed by an identifier. (read as a script) at main.js:2:11", "interface { x: number }"},
		{"JavaScript error", "const a: number = 1;\nlet b: number = ;", nil, "syntax SyntaxError: Unexpected token (read as a script) at main.js:2:17", "let b: number = ;"},
		{"early error of the engine", "type T = 1;\n\nlet a = 1; let a = 2;", nil, "syntax SyntaxError: ", "let a = 1; let a = 2;"},
		{"in a module", "import './a.ts'", mods("a.ts", "module", "export const a = 1;\n\nlet x: = 1"), "syntax SyntaxError: Unexpected token (read as a module) at a.ts:3:8", "let x: = 1"},
		{"thrown in a module", "import './a.ts'", mods("a.ts", "module", "interface A {\n  a: number;\n}\n\n/* 😀 */ export const a = (null as any).x"), "exception TypeError: Cannot read properties of null (reading 'x') at a.ts:5:41", "/* 😀 */ export const a = (null as any).x"},
		{"too large", "type A = 1;\n" + "// " + strings.Repeat("x", 3<<20), nil, "syntax : main.js is too large: TypeScript may have 2048 KiB", ""},
		{"too deep", "let a: any = x" + strings.Repeat(".a", 200_000), nil, "syntax SyntaxError: the text is nested too deeply", ""},
		{"import that is missing", "type T = 1;\nimport { x } from 'gone'; x", nil, `module TypeError: cannot find module "gone"`, "import { x } from 'gone'; x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := p.run(job{code: c.code, modules: c.modules, typed: true})
			got := textOf(e)
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %.300s\nwant %s", got, c.want)
			}
			if c.line != "" && (e.err == nil || e.err.Position == nil || e.err.Position.SourceLine != c.line) {
				t.Errorf("position %+v, want %q", e.err.Position, c.line)
			}
		})
	}
	t.Run("sent as JavaScript", func(t *testing.T) {
		e := p.run(job{code: "interface A { x: number }\nreturn 1"})
		if e.err == nil || e.err.Type != protocol.Syntax || !strings.Contains(e.err.Message, `it is TypeScript: send it with language "typescript"`) {
			t.Error(textOf(e))
		}
	})
}

// TestTypeScriptUnderTheClocks gives the eraser more than a clock allows.
func TestTypeScriptUnderTheClocks(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	code := strings.Repeat("function f(a: number, b: string): any { return { a, b, c: [a, b] as const } }\n", 20_000)
	e := p.run(job{code: code, typed: true, limits: func(l *worker.Limits) { l.CPU, l.Wall = 50*time.Millisecond, 50*time.Millisecond }})
	if e.err != nil && (e.err.Type == protocol.CPUTimeout || e.err.Type == protocol.WallTimeout) {
		return
	}
	if e.last == nil || (e.last.Type != string(protocol.CPUTimeout) && e.last.Type != string(protocol.WallTimeout)) {
		t.Fatalf("got %.200s, last word %+v", textOf(e), e.last)
	}
}

// TestE3LineNumbersOfTypeScript throws on line 3 with a block of types above, in every form.
func TestE3LineNumbersOfTypeScript(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	types := "type A = { a: number; b?: string };\ninterface B extends A { c(): void }\n"
	for _, c := range []struct{ name, code, at, stack string }{
		{"script", types + "throw new Error('x');", "3:7", "Error: x\n    at main.js:3:7"},
		{"script, in a line with types", types + "const a: A = { a: 1 }; if (a.a as number) { throw new TypeError('x' as string); }", "3:51", "TypeError: x\n    at main.js:3:51"},
		{"function", types + "async (input: B): Promise<void> => { throw new Error('x') }", "3:44", "Error: x\n    at main.js:3:44"},
		{"module", types + "export const f = (): never => { throw new Error('x') };\nexport default f", "3:39", "Error: x\n    at f (main.js:3:39)"},
		{"in a function that is called", types + "function g<T>(t: T): T { return (t as any).x.y }\ng<number>(1)", "3:46", "at g (main.js:3:46)\n    at main.js:4:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := p.run(job{code: c.code, typed: true})
			if e.err == nil || !strings.Contains(e.err.Stack, c.stack) {
				t.Fatalf("got %s\n%v", textOf(e), e.err.Stack)
			}
			if got := position(e.err); !strings.HasPrefix(got, c.at[:2]) {
				t.Errorf("at %s, want %s", got, c.at)
			}
		})
	}
}
