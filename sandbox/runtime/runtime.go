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
	_ "embed"
	"encoding/hex"
	"io"
	"sync"
)

//go:generate go run ./bundle

//go:embed dist/library.js
var library string

//go:embed dist/warm.js
var warm string

//go:embed dist/analyzer.js
var analyzer string

// Source returns the classic script whose completion value is install(native) → internals. install defines the globals
// of the guest; internals has the functions begin, fire, settle, report and inspect that the event loop calls.
func Source() string { return library }

// Warm returns the script that is run once after install while the snapshot is built, so that typical calls are
// compiled in it. Before internals.begin the library calls none of the functions of native that act: call, log,
// timerStart, timerStop.
func Warm() string { return warm }

// AnalyzerSource returns the classic script whose completion value is analyze(code, form) → plan, a JSON text that
// sandbox/entry reads. It never runs the code, and is to be run where no guest ever runs.
func AnalyzerSource() string { return analyzer }

var hash = sync.OnceValue(func() string {
	h := sha256.New()
	for _, text := range []string{library, warm, analyzer} {
		_, _ = io.WriteString(h, text) // a hash never fails
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
})

// Hash names the three texts: a snapshot made from other texts has another hash. 64 hexadecimal digits.
func Hash() string { return hash() }
