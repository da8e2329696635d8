package sandbox_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/sandbox/confine/calls"
)

// TestK9FilterFitsTheEngine: the list of system calls was made with this version of V8, and what makes a worker's threads,
// code and memory in unusual ways works under it. All other tests of workers run under it too.
func TestK9FilterFitsTheEngine(t *testing.T) {
	version, err := exec.Command(testbin.Worker(t), "-version").Output()
	if err != nil || !strings.HasPrefix(string(version), "V8 "+calls.Engine) {
		t.Fatalf("the filter is for V8 %s, the worker has %s, %v: HACKING.md says how the list is made", calls.Engine, version, err)
	}
	p := ready(t, testbin.Worker(t))
	for _, c := range []struct{ name, code, want string }{
		{"compilation in the background", "const m = await WebAssembly.compile(new Uint8Array([0,97,115,109,1,0,0,0,1,4,1,96,0,0,3,2,1,0,10,4,1,2,0,11])); return m instanceof WebAssembly.Module", "true"},
		{"optimized code", "function f(n) { let s = 0; for (let i = 0; i < n; i++) s = (s + i * i) | 0; return s; } for (let i = 0; i < 200; i++) f(1e5); return f(10)", "285"},
		{"many collections", "let keep = []; for (let i = 0; i < 2e6; i++) { keep.push({i}); if (keep.length > 1e5) keep = []; } return keep.length > 0", "true"},
		{"large blocks", "let b = new ArrayBuffer(1 << 20, {maxByteLength: 64 << 20}); b.resize(64 << 20); b.resize(1); let s = 'x'.repeat(20 << 20); return s.length", "20971520"},
		{"time zones", "return new Date(0).toLocaleString('en-GB', {timeZone: 'Asia/Tokyo'}) + ' ' + Intl.DateTimeFormat().resolvedOptions().timeZone", `"01/01/1970, 09:00:00 UTC"`},
		{"collation", "return ['ä', 'z', 'a'].sort(new Intl.Collator('de').compare).join()", `"a,ä,z"`},
		{"random", "return crypto.getRandomValues(new Uint8Array(8)).length + Number(Math.random() < 1)", "9"},
		{"keys", "const k = await crypto.subtle.generateKey({name: 'ECDSA', namedCurve: 'P-256'}, true, ['sign']); return k.privateKey.type", `"private"`},
		{"deep stacks", "const f = () => f(); try { f() } catch (e) { return e.name }", `"RangeError"`},
		{"regular expressions", "return /^(a|b)*c$/.test('ab'.repeat(1e4) + 'c')", "true"},
		{"timers", "for (let i = 0; i < 50; i++) await new Promise(r => setTimeout(r, 1)); return 1", "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if e := p.run(job{code: c.code}); e.value != c.want {
				t.Errorf("got %s, %v, want %s", e.value, e.err, c.want)
			}
		})
	}
}
