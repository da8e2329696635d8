package runtime_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/executord/executord/ipc/pagetest"
	"github.com/executord/executord/sandbox/runtime"
	"github.com/executord/executord/sandbox/runtime/guesttest"
)

var update = flag.Bool("update", false, "write what the programs of testdata print now into testdata")

func TestMain(m *testing.M) { guesttest.Main(m) }

// TestCases runs each program of testdata/*.txt in the real engine and compares what it prints. testdata/README.md
// describes the files.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no case files", err)
	}
	for _, file := range files {
		cases := readCases(t, file)
		for i, c := range cases {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+c.name, func(t *testing.T) {
				got := runCase(t, c, networked[filepath.Base(file)])
				cases[i].want = got
				if got != c.want && !*update {
					t.Errorf("of what is printed %s", pagetest.FirstDifference(got, c.want))
				}
			})
		}
		if *update {
			writeCases(t, file, cases)
		}
	}
}

// testCase is a program and what comes of it, as testdata writes it.
type testCase struct{ name, code, want string }

const (
	nameMark   = "=== "
	resultMark = "---"
)

func readCases(t *testing.T, file string) []testCase {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []testCase
	seen := map[string]bool{}
	for _, block := range strings.Split("\n"+string(text), "\n"+nameMark)[1:] {
		name, rest, _ := strings.Cut(block, "\n")
		code, want, found := strings.Cut(rest, "\n"+resultMark+"\n")
		if !found && !*update {
			t.Fatalf("%s: %s has no result", file, name)
		}
		if seen[name] {
			t.Fatalf("%s: %s is there twice", file, name)
		}
		seen[name] = true
		cases = append(cases, testCase{name, strings.TrimSuffix(code, "\n"), strings.TrimSpace(want)})
	}
	return cases
}

func writeCases(t *testing.T, file string, cases []testCase) {
	t.Helper()
	var out strings.Builder
	for i, c := range cases {
		if i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(nameMark + c.name + "\n" + c.code + "\n" + resultMark + "\n" + c.want + "\n")
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// providers of every case: `tools` answers any name with its first argument, `listed` has two tools.
const providers = `[{"name":"tools","all":true},
	{"name":"listed","paths":[["users","get"],["users"],["then"],["__proto__"],["constructor"]]}]`

// networked are the files whose programs have a network, as package guesttest plays it.
var networked = map[string]bool{"network.txt": true, "eventsource.txt": true}

func program(c testCase, network bool) guesttest.Program {
	return guesttest.Program{
		Network: network,
		Code:    c.code, Providers: providers, Input: `{"n":1}`,
		Modules: map[string]string{"helper": "export const one = 1; export default () => 2;", "hostile": hostile(), "jspi": jspi()},
	}
}

// hostile is testdata/hostile.js with the names that the library uses as properties: nearly all, for they are found by
// how they are written.
var hostile = sync.OnceValue(func() string {
	text, err := os.ReadFile("testdata/hostile.js")
	if err != nil {
		panic(err)
	}
	names := map[string]bool{}
	collect := func(source string) {
		for _, m := range regexp.MustCompile(`[.{,]([A-Za-z_]\w*)\b`).FindAllStringSubmatch(source, -1) {
			names[m[1]] = true
		}
	}
	collect(runtime.Source())
	for _, part := range runtime.Parts() {
		source, _ := runtime.Part(part)
		collect(source)
	}
	list, err := json.Marshal(slices.Sorted(maps.Keys(names)))
	if err != nil {
		panic(err)
	}
	return strings.Replace(string(text), "= NAMES;", "= "+string(list)+";", 1)
})

// jspi is testdata/jspi.js.
var jspi = sync.OnceValue(func() string {
	text, err := os.ReadFile("testdata/jspi.js")
	if err != nil {
		panic(err)
	}
	return string(text)
})

// elapsed is what differs from one run to the next.
var elapsed = regexp.MustCompile(`: \d+ms`)

func runCase(t *testing.T, c testCase, network bool) string {
	t.Helper()
	o := guesttest.Execute(t, program(c, network))
	var out strings.Builder
	for _, line := range o.Logs {
		level, text, _ := strings.Cut(line, " ")
		out.WriteString(level + "| " + strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", len(level))+"| ") + "\n")
	}
	for _, call := range o.Calls {
		out.WriteString("call| " + call + "\n")
	}
	switch {
	case o.Err != nil:
		out.WriteString("error: " + o.Err.Error() + "\n")
	case o.Value != `{"@undefined":true}`:
		out.WriteString("value: " + o.Value + "\n")
	}
	// Lines of text may end in spaces, files of cases may not.
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return elapsed.ReplaceAllString(strings.Join(lines, "\n"), ": <n>ms")
}

// TestOutputIsBounded checks the bounds on what one console call may print, which are too long for testdata.
func TestOutputIsBounded(t *testing.T) {
	for _, c := range []struct {
		name, code string
		length     int // at most
		end        string
	}{
		{"a string at the top is whole", `console.log("x".repeat(300_000))`, 300_000, "xxx"},
		{"a string inside", `console.log(["x".repeat(10_001)])`, 11_000, "xxx'... 1 more characters\n]"},
		{"keys", `console.log(Object.fromEntries(Array.from({length: 100_000}, (_, i) => ["k" + i, i])))`, 200_000, "more properties\n}"},
		{"strings of an array", `console.log(Array.from({length: 100}, () => "y".repeat(9000)))`, 120_000, "more items\n]"},
		{"a wide tree", `const w = (d) => d === 0 ? 1 : Array.from({length: 100}, () => w(d - 1)); console.log(w(3))`, 300_000, "more items\n]"},
		{"a map", `console.log(new Map(Array.from({length: 5000}, (_, i) => [i, "z".repeat(5000)])))`, 120_000, "more items\n}"},
		{"long causes", `let e; for (let i = 0; i < 1000; i++) e = new Error("m".repeat(1000), {cause: e}); console.log(e)`, 120_000, "}"},
		{"table", `console.table(Array.from({length: 5000}, (_, i) => ({i})))`, 100_000, "┘"},
		{"deep groups", `for (let i = 0; i < 1000; i++) console.group(); console.log("in")`, 50, "in"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := guesttest.Execute(t, guesttest.Program{Code: c.code})
			if o.Err != nil || len(o.Logs) != 1 {
				t.Fatalf("%v, %d lines", o.Err, len(o.Logs))
			}
			_, text, _ := strings.Cut(o.Logs[0], " ")
			if n := len(text); n > c.length || !strings.HasSuffix(text, c.end) {
				t.Errorf("%d bytes ending in %q", n, text[max(0, n-60):])
			}
		})
	}
}

// TestSnapshotStaysSmall guards the cost of each execution, which grows with the snapshot. V8's own part is 328 KB.
func TestSnapshotStaysSmall(t *testing.T) {
	size := guesttest.SnapshotSize()
	t.Logf("library %d bytes, snapshot %d", len(runtime.Source()), size)
	if len(runtime.Source()) > 28<<10 {
		t.Errorf("the library has %d bytes", len(runtime.Source()))
	}
	if size > 450_000 {
		t.Errorf("the snapshot has %d bytes", size)
	}
}

func TestHashNamesTheTexts(t *testing.T) {
	if h := runtime.Hash(); len(h) != 64 || h != runtime.Hash() {
		t.Error(h)
	}
}
