// Package runtime holds the JavaScript that the sandbox puts around a program: the library of the guest's global, which
// goes into V8's startup snapshot, and the analyzer that reads submitted text without running it. The sources are in
// src and analyze, one file per governing standard; sandbox/runtime/bundle makes the embedded texts from them. Package
// sandbox calls it. It holds texts only: it never runs JavaScript and has no state, so any goroutine may use it.
//
// Allowed in a snapshot, and so to the library, is everything but Intl objects, WebAssembly, SharedArrayBuffer and
// definitions of Promise.try, RegExp.escape, Error.isError, Atomics.pause and Error.stackTraceLimit (V8 13.6 dies when
// it restores such a snapshot).
package runtime

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"io/fs"
	"strings"
	"sync"
)

//go:generate go run ./bundle

//go:embed dist/library.js
var library string

//go:embed dist/warm.js
var warm string

//go:embed dist/analyzer.js
var analyzer string

//go:embed dist/typescript.js
var typescript string

//go:embed dist/parts
var parts embed.FS

// Source returns the classic script whose completion value is install(native) → internals. install defines the globals
// of the guest; internals has what the engine calls: begin, fire, settle, report and inspect for the event loop, describe
// and revive for the value codec, and wake, which gives a name on the list lazy its value.
func Source() string { return library }

// Warm returns the script that is run once after install while the snapshot is built, so that typical calls are
// compiled in it. Before internals.begin the library calls none of the functions of native that act: call, log,
// timerStart, timerStop.
func Warm() string { return warm }

// AnalyzerSource returns the classic script whose completion value is analyze(code, form) → plan, a JSON text that
// sandbox/entry reads. It never runs the code, and is to be run where no guest ever runs.
func AnalyzerSource() string { return analyzer }

// Analyze calls the analyzer, and gives it what it needs for TypeScript when it first needs that. call calls the value
// of AnalyzerSource in its isolate, in which code may come from strings.
func Analyze(call func(code, form string) (string, error), code, form string) (string, error) {
	plan, err := call(code, form)
	if err != nil || !strings.HasPrefix(plan, `{"needs":"typescript"`) {
		return plan, err
	}
	if _, err := call(typescript, "learn"); err != nil {
		return "", err
	}
	return call(code, form)
}

const partsFolder = "dist/parts/"

// Parts returns the names of the library's parts, sorted.
func Parts() []string {
	files, err := fs.Glob(parts, partsFolder+"*.js")
	if err != nil {
		panic(err) // the pattern is constant
	}
	var names []string
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(f, partsFolder), ".js")
		if !strings.HasSuffix(name, ".warm") {
			names = append(names, name)
		}
	}
	return names
}

// Part returns the text of a part: a classic script whose completion value is install(core) → values. ok is false for
// an unknown name.
func Part(name string) (text string, ok bool) {
	b, err := parts.ReadFile(partsFolder + name + ".js")
	return string(b), err == nil
}

// PartWarm returns a script that uses a part as programs do, so that its code cache has what they need; empty if there
// is none.
func PartWarm(name string) string {
	b, err := parts.ReadFile(partsFolder + name + ".warm.js")
	if err != nil {
		return ""
	}
	return string(b)
}

// hash reads the texts piece by piece: a copy of them all would be memory that each start of a worker touches for it.
var hash = sync.OnceValue(func() string {
	h := sha256.New()
	piece := make([]byte, 4096)
	add := func(text io.Reader) {
		_, _ = io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{text}, piece) // neither fails
		h.Write([]byte{0})
	}
	for _, text := range []string{library, warm, analyzer, typescript} {
		add(strings.NewReader(text))
	}
	for _, name := range Parts() {
		for _, file := range []string{name + ".js", name + ".warm.js"} {
			add(strings.NewReader(file))
			if f, err := parts.Open(partsFolder + file); err == nil {
				add(f)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))
})

// Hash names all texts: a snapshot made from other texts has another hash. 64 hexadecimal digits.
func Hash() string { return hash() }
