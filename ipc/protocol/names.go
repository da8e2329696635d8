package protocol

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of names.
const (
	MaxProviderNameRunes = 64
	MaxToolNameBytes     = 256
	MaxToolPath          = 16
)

// CheckProviderName returns nil when name may be the name of a provider, else an *Error of type invalid_provider that
// names the rule that it breaks: it must be an identifier of ECMA-262, of at most MaxProviderNameRunes code points, not
// a reserved word of strict or module code, and not a name that the sandbox or a module wrapper gives a meaning.
func CheckProviderName(name string) error {
	switch {
	case !utf8.ValidString(name):
		return providerError(name, "is not valid Unicode text")
	case name == "":
		return providerError(name, "is empty")
	case utf8.RuneCountInString(name) > MaxProviderNameRunes:
		return Errorf(InvalidProvider, "provider name %.80q… is longer than %d code points", name, MaxProviderNameRunes)
	case !isIdentifier(name):
		return providerError(name, "is not a JavaScript identifier")
	case reservedWords[name]:
		return providerError(name, "is a reserved word of JavaScript")
	case wrapperNames[name]:
		return providerError(name, "has a meaning of its own in modules")
	case globalNames[name]:
		return providerError(name, "is a global of the sandbox")
	}
	return nil
}

func providerError(name, rule string) error {
	return Errorf(InvalidProvider, "provider name %q %s", name, rule)
}

// CheckToolPath returns nil when path may be the path of a tool: one name or several, each a non-empty string of at
// most MaxToolNameBytes bytes. Else the *Error is of type invalid_provider.
func CheckToolPath(path []string) error {
	if len(path) == 0 {
		return Errorf(InvalidProvider, "tool path is empty")
	}
	if len(path) > MaxToolPath {
		return Errorf(InvalidProvider, "tool path has %d names, more than %d", len(path), MaxToolPath)
	}
	for _, name := range path {
		switch {
		case name == "":
			return Errorf(InvalidProvider, "tool name is empty")
		case len(name) > MaxToolNameBytes:
			return Errorf(InvalidProvider, "tool name %.80q… is longer than %d bytes", name, MaxToolNameBytes)
		case !utf8.ValidString(name):
			return Errorf(InvalidProvider, "tool name %q is not valid Unicode text", name)
		}
	}
	return nil
}

// isIdentifier is IdentifierName of ECMA-262, without escapes.
func isIdentifier(name string) bool {
	for i, r := range name {
		if i == 0 && !idStart(r) || !idContinue(r) {
			return false
		}
	}
	return name != ""
}

// idStart is ID_Start of Unicode Standard Annex 31 and what ECMA-262 adds. The tables are those of Go's unicode
// package; Unicode only ever adds to ID_Start, so a newer engine accepts all of it.
func idStart(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '$' || r == '_' || r|0x20 >= 'a' && r|0x20 <= 'z'
	}
	return unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start) && !patternRune(r)
}

func idContinue(r rune) bool {
	const joiners = "\u200c\u200d"
	if r < utf8.RuneSelf {
		return idStart(r) || r >= '0' && r <= '9'
	}
	return idStart(r) || strings.ContainsRune(joiners, r) ||
		unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue) && !patternRune(r)
}

func patternRune(r rune) bool {
	return unicode.In(r, unicode.Pattern_Syntax, unicode.Pattern_White_Space)
}

func names(lists ...string) map[string]bool {
	m := map[string]bool{}
	for _, name := range strings.Fields(strings.Join(lists, " ")) {
		m[name] = true
	}
	return m
}

// reservedWords are those of strict module code (ECMA-262, section 12.7.2, with the words of 13.1.1 that strict code
// cannot bind). Contextual words such as async, of, get and from are ordinary identifiers.
var reservedWords = names(`
	await break case catch class const continue debugger default delete do else enum export extends false finally for
	function if import in instanceof new null return super switch this throw true try typeof var void while with yield
	let static implements interface package private protected public
	arguments eval`)

// wrapperNames are bound by a module wrapper of CommonJS, are given to the entry, or are what programs look for on
// other hosts and get a pinned explanation for.
var wrapperNames = names(`
	require module exports __filename __dirname input
	process Buffer global setImmediate clearImmediate`)

// globalNames are the properties of the sandbox's global object: those of ECMA-262 and Annex B, of ECMA-429, of the
// standards that it leaves for later, and what every object inherits.
var globalNames = names(languageGlobals, webGlobals, laterGlobals, inheritedNames)

const languageGlobals = `
	globalThis Infinity NaN undefined
	isFinite isNaN parseFloat parseInt decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape
	AggregateError Array ArrayBuffer AsyncDisposableStack Atomics BigInt BigInt64Array BigUint64Array Boolean DataView
	Date DisposableStack Error EvalError FinalizationRegistry Float16Array Float32Array Float64Array Function Int8Array
	Int16Array Int32Array Intl Iterator JSON Map Math Number Object Promise Proxy RangeError ReferenceError Reflect
	RegExp Set SharedArrayBuffer String SuppressedError Symbol SyntaxError Temporal TypeError URIError Uint8Array
	Uint8ClampedArray Uint16Array Uint32Array WeakMap WeakRef WeakSet WebAssembly`

const webGlobals = `
	AbortController AbortSignal Event EventTarget CustomEvent ErrorEvent MessageChannel MessageEvent MessagePort
	PromiseRejectionEvent DOMException QuotaExceededError Headers Request Response fetch FormData Blob File
	CompressionStream DecompressionStream ReadableStream ReadableStreamDefaultReader ReadableStreamBYOBReader
	ReadableStreamDefaultController ReadableByteStreamController ReadableStreamBYOBRequest WritableStream
	WritableStreamDefaultWriter WritableStreamDefaultController TransformStream TransformStreamDefaultController
	ByteLengthQueuingStrategy CountQueuingStrategy TextEncoder TextDecoder TextEncoderStream TextDecoderStream URL
	URLSearchParams URLPattern Crypto CryptoKey SubtleCrypto crypto Performance performance atob btoa setTimeout
	clearTimeout setInterval clearInterval queueMicrotask structuredClone reportError self navigator Navigator onerror
	onunhandledrejection onrejectionhandled console addEventListener removeEventListener dispatchEvent`

// laterGlobals are reserved so that giving them one day breaks no host.
const laterGlobals = `
	WebSocket CloseEvent EventSource BroadcastChannel PerformanceEntry PerformanceMark PerformanceMeasure
	PerformanceObserver PerformanceObserverEntryList scheduler Scheduler`

const inheritedNames = `
	__proto__ __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__ constructor hasOwnProperty
	isPrototypeOf propertyIsEnumerable toLocaleString toString valueOf`
