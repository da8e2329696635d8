package v8

import (
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// An isolate lives in the memory of the one before it, and the kernel is not asked.
func TestPagesOfIsolatesAreUsedAgain(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	anchor := open(t, &recorder{})
	defer anchor.Close()
	one := func() int {
		before := readPages().asked
		iso := open(t, &recorder{})
		give(t, iso, "'x'.repeat(1 << 20)")
		if _, err := iso.Value(8 << 20); err != nil {
			t.Fatal(err)
		}
		if err := iso.Close(); err != nil {
			t.Fatal(err)
		}
		return readPages().asked - before
	}
	large := open(t, &recorder{}) // fills what may be kept with what the others never ask for
	give(t, large, "Array.from({length: 40}, () => new ArrayBuffer(1 << 20, {maxByteLength: 2 << 20})).length")
	if err := large.Close(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		one()
	}
	least := one()
	for range 20 {
		least = min(least, one())
	}
	if least > 10 { // 52 where V8 gives its pages back
		t.Errorf("an isolate asks the kernel %d times for memory, though one before it was as large", least)
	}
}

// What is kept is zero, and never more than its bound, whatever isolates did and in what order they went.
func TestPagesThatAreKeptAreErased(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	programs := []string{
		"1 + 1",
		"Array.from({length: 3e5}, (_, i) => 'secret ' + i).length",
		"new Uint8Array(20 << 20).fill(42).length",
		"[...Array(40)].map(() => new Float64Array(1 << 14).fill(Math.PI)).length",
		"'secret'.repeat(1 << 18).split('').reverse().join('').length",
		"new WebAssembly.Memory({initial: 64, maximum: 512}).grow(64)",
		"(() => { let f; for (let i = 0; i < 300; i++) { f = new Function('a', 'return a * ' + i); for (let j = 0; j < 300; j++) f(j); } return f(2); })()",
		"(() => { let o = {}; for (let i = 0; i < 2e5; i++) o['k' + i] = {i}; return Object.keys(o).length; })()",
	}
	rng := rand.New(rand.NewPCG(1, 2))
	anchor := open(t, &recorder{})
	defer anchor.Close()
	most := 0
	for range 15 {
		var alive []*Isolate
		for range 1 + rng.IntN(3) {
			iso := open(t, &recorder{})
			give(t, iso, programs[rng.IntN(len(programs))])
			alive = append(alive, iso)
		}
		rng.Shuffle(len(alive), func(i, j int) { alive[i], alive[j] = alive[j], alive[i] })
		for _, iso := range alive {
			if err := iso.Close(); err != nil {
				t.Fatal(err)
			}
			p := readPages()
			if p.dirty != 0 || p.kept > 8<<20 {
				t.Fatalf("%d bytes are kept, and %d of them are not zero", p.kept, p.dirty)
			}
			most = max(most, p.kept)
		}
	}
	if most == 0 {
		t.Error("nothing is ever kept")
	}
}

// What V8 believes zero is zero, also where it asks for other pieces than it does today.
func TestPagesWhateverIsAsked(t *testing.T) {
	compiler, err := exec.Command("go", "env", "CXX").Output()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "pages")
	args := append(strings.Fields(string(compiler)), "-std=c++20", "-O1", "-o", program, "testdata/pages.cc", "pages.cc",
		"-Wl,--wrap=mmap64", "-Wl,--wrap=munmap", "-Wl,--wrap=mprotect", "-Wl,--wrap=madvise")
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A large program's memory goes back to the kernel.
func TestPagesOfLargeIsolatesAreGivenBack(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	anchor := open(t, &recorder{})
	defer anchor.Close()
	large := func() {
		iso := open(t, &recorder{})
		give(t, iso, "globalThis.kept = Array.from({length: 40}, (_, i) => new Array(1 << 17).fill(i)); kept.length")
		if err := iso.Close(); err != nil {
			t.Fatal(err)
		}
	}
	large()
	before := rss(t)
	for range 5 {
		large()
	}
	if after := rss(t); after > before+16<<20 {
		t.Errorf("resident memory grew from %d to %d MiB", before>>20, after>>20)
	}
}

// give runs an expression.
func give(t *testing.T, iso *Isolate, expression string) {
	t.Helper()
	if err := iso.Run("main.js", "export default "+expression, false, nil); err != nil {
		t.Fatal(err)
	}
	if state, err := iso.Drain(); err != nil || state != Settled {
		t.Fatalf("state %v, %v", state, err)
	}
}

// A long value is the isolate's memory until it is told to let go.
func TestFreeValue(t *testing.T) {
	iso := open(t, &recorder{})
	give(t, iso, "'x'.repeat(40 << 20)")
	v, err := iso.Value(64 << 20)
	if err != nil || len(v) != 40<<20+2 || v[1] != 'x' || v[len(v)-1] != '"' {
		t.Fatalf("%d bytes, %v", len(v), err)
	}
	before := rss(t)
	iso.FreeValue()
	if after := rss(t); after > before-30<<20 {
		t.Errorf("resident memory went from %d to %d MiB", before>>20, after>>20)
	}
}
