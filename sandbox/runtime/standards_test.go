package runtime_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// minCases is how many cases each file of a standard has at least.
const minCases = 25

// standards are the files of testdata by the standards that govern the library: those of ECMA-429 (Minimum common web
// API, 1st edition), and of what is there beyond it.
var standards = map[string][]string{
	"DOM":                  {"abort", "events"},
	"HTML":                 {"base64", "broadcastchannel", "clone", "eventsource", "global", "messaging", "microtask", "modules", "timers"},
	"Web IDL":              {"domexception"},
	"Fetch":                {"fetch", "network"},
	"XMLHttpRequest":       {"formdata"},
	"File API":             {"blob", "filereader"},
	"Compression":          {"compression"},
	"Streams":              {"streams"},
	"Encoding":             {"encoding", "legacy"},
	"URL":                  {"idna", "url"},
	"URL Pattern":          {"urlpattern"},
	"Web Cryptography":     {"crypto"},
	"High Resolution Time": {"performance"},
	"Console":              {"console", "inspect"},
	"WebAssembly":          {"wasm"},
	"ECMA-262":             {"language"},
}

// own are the files about what no standard governs.
var own = []string{"hardening", "hostile", "providers", "settle"}

// TestEveryStandardHasItsCases: no standard is without a test of its own, and no file is forgotten here.
func TestEveryStandardHasItsCases(t *testing.T) {
	known := map[string]bool{}
	for _, name := range own {
		known[name] = true
	}
	for standard, files := range standards {
		for _, name := range files {
			known[name] = true
			if n := len(readCases(t, "testdata/"+name+".txt")); n < minCases {
				t.Errorf("%s: %s.txt has %d cases, must have %d", standard, name, n, minCases)
			}
		}
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".txt"); !known[name] {
			t.Errorf("%s belongs to no standard", file)
		}
	}
}
