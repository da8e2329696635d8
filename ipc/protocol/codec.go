package protocol

import (
	"math"
	"math/big"
	"unicode/utf16"
)

// The value codec: every structured-clone value as JSON text. An object with exactly one key that starts with "@" is a
// tag; all else is plain JSON.
//
//	null, booleans, strings, finite numbers, arrays, plain objects   as JSON
//	undefined                          {"@undefined":true}
//	n consecutive holes, in an array   {"@hole":n}
//	NaN, ±Infinity, -0                 {"@number":"NaN"} "Infinity" "-Infinity" "-0"
//	BigInt                             {"@bigint":"-123"}
//	Date                               {"@date":ms}, {"@date":null} when invalid
//	RegExp, URL                        {"@regexp":[source,flags]}, {"@url":href}
//	Map, Set                           {"@map":[[key,value]…]}, {"@set":[value…]}
//	Error                              {"@error":{"name":…,"message":…,"stack"?:…,"cause"?:value,"errors"?:value,…own}}
//	Uint8Array                         {"@bytes":base64}
//	ArrayBuffer, other views           {"@buffer":[kind,base64]}: the visible bytes, little-endian
//	boxed primitive                    {"@boxed":[primitive]}
//	Blob, File                         {"@blob":{"type":…,"data":bytes}}, {"@file":{"name":…,"type":…,"lastModified":ms,"data":bytes}}
//	Headers, FormData                  {"@headers":[[name,value]…]}, {"@formdata":[[name,string or File]…]}
//	Request                            {"@request":{"method":…,"url":…,"headers":[[name,value]…],"body":bytes or null,…options}}
//	Response                           {"@response":{"status":…,"statusText":…,"url":…,"headers":[[name,value]…],"body":bytes or null,…}}
//	string with lone surrogates        {"@utf16":base64 of little-endian code units}
//	object seen before                 {"@ref":pointer}
//	function in a retained result      {"@handle":id}
//	iterator, stream there             {"@handle":[id,"iterator"]}, {"@handle":[id,"stream"]}
//	object whose only key starts with @  {"@object":{…}}
//
// A pointer is a JSON Pointer (RFC 6901) into the text of this very Value, "" for all of it. It leads to where the
// object's own encoding stands, tags included, which is earlier in the text or around the reference: in
// {"a":{"@map":[["k",[]]]},"b":{"@ref":"/a/@map/0/1"}} both hold the same array. Indices are those of the text, so
// {"@hole":5} counts one.
//
// Keys, and the strings inside tags that are no Values (a message, a source), say a lone surrogate with the escape of
// JSON, as "\ud800". Bytes inside the tags of the web's interfaces are {"@bytes":base64} without identity; their members
// are those of RequestValue and its like, optional ones left out where they say nothing. A BigInt has at most
// MaxBigIntBits. Base64 is that of RFC 4648 with padding. Arrays carry their indices only. An object has each key
// once; "__proto__" is a key like any other. Numbers have the range of float64.
//
// Decode and Encode are exact: the types below hold every such value, and pointers to them its identity. Marshal and
// Unmarshal speak the Go types that programs ordinarily have.

// Undefined is the value undefined.
type Undefined struct{}

// UTF16 is a string that has lone surrogates, in code units.
type UTF16 []uint16

// Handle stands for a function in a retained result, or for what can be iterated there.
type Handle struct {
	ID   string
	Kind HandleKind
}

// HandleKind is what a Handle stands for.
type HandleKind string

// The kinds. A generator or another object with an iterator for await is a HandleIterator, a ReadableStream a HandleStream.
const (
	HandleFunction HandleKind = ""
	HandleIterator HandleKind = "iterator"
	HandleStream   HandleKind = "stream"
)

// Hole stands for that many consecutive holes, as an item of an Array; at least 1.
type Hole uint32

// Object is a plain object. A lone surrogate in a key is the three bytes of its code point in generalised UTF-8.
type Object struct{ Members []Member }

// Member is one own property.
type Member struct {
	Key   string
	Value any
}

// Array is an array: Items holds values and Holes.
type Array struct{ Items []any }

// Map is a Map in order of insertion.
type Map struct{ Entries []Entry }

// Entry is one entry of a Map.
type Entry struct{ Key, Value any }

// Set is a Set in order of insertion.
type Set struct{ Items []any }

// Date is a Date: milliseconds since 1970 UTC, a whole number of at most 8.64e15 either way, or NaN when invalid.
type Date struct{ Ms float64 }

// RegExp is a RegExp. Nothing says that Source is a pattern that any engine takes.
type RegExp struct{ Source, Flags string }

// URL is a URL by its href.
type URL struct{ Href string }

// ErrorValue is an Error. Name is that of its class; Props are its other own properties, cause and errors among them.
type ErrorValue struct {
	Name, Message, Stack string
	Props                []Member
}

// Error makes an ErrorValue a Go error.
func (e *ErrorValue) Error() string {
	if e.Message == "" {
		return e.Name
	}
	return e.Name + ": " + e.Message
}

// Prop returns the own property of that name; ok is false when there is none.
func (e *ErrorValue) Prop(name string) (value any, ok bool) {
	for _, m := range e.Props {
		if m.Key == name {
			return m.Value, true
		}
	}
	return nil, false
}

// Buffer is an ArrayBuffer, a typed array or a DataView: Kind is the name of its class, Data the bytes that it shows,
// little-endian.
type Buffer struct {
	Kind string
	Data []byte
}

// Boxed is a Boolean, Number, String or BigInt object. Value is a bool, float64, string, UTF16 or *big.Int.
type Boxed struct{ Value any }

// elementBytes are the classes of Buffer and the size of their elements.
var elementBytes = map[string]int{
	"ArrayBuffer": 1, "DataView": 1, "Int8Array": 1, "Uint8Array": 1, "Uint8ClampedArray": 1,
	"Int16Array": 2, "Uint16Array": 2, "Float16Array": 2, "Int32Array": 4, "Uint32Array": 4, "Float32Array": 4,
	"Float64Array": 8, "BigInt64Array": 8, "BigUint64Array": 8,
}

// MaxBigIntBits bounds a BigInt: writing and reading a longer one in decimal takes time that grows faster than its
// length, and cannot be interrupted.
const MaxBigIntBits = 1 << 16

const (
	// maxBigIntDigits is the number of digits of the largest BigInt.
	maxBigIntDigits = 19729
	// maxDateMs is the largest time value of ECMA-262, section 21.4.1.1.
	maxDateMs = 8.64e15
	// maxArrayLength is the largest length of an array.
	maxArrayLength = math.MaxUint32
)

// ValueError tells which part of a value cannot be encoded or decoded, and why.
type ValueError struct {
	Path   string // JSON Pointer into the encoded text
	Reason string
}

func (e *ValueError) Error() string {
	if e.Path == "" {
		return "cannot code value: " + e.Reason
	}
	return "cannot code value at " + e.Path + ": " + e.Reason
}

// isBoxable tells that v is a primitive that has an object form.
func isBoxable(v any) bool {
	switch v.(type) {
	case bool, float64, string, UTF16, *big.Int:
		return true
	}
	return false
}

// text returns u as a string when it is well formed.
func (u UTF16) text() (s string, ok bool) {
	for i := 0; i < len(u); i++ {
		if r := rune(u[i]); utf16.IsSurrogate(r) {
			if i++; i == len(u) || utf16.DecodeRune(r, rune(u[i])) == '\uFFFD' {
				return "", false
			}
		}
	}
	return string(utf16.Decode(u)), true
}

// String returns u with U+FFFD for each lone surrogate.
func (u UTF16) String() string { return string(utf16.Decode(u)) }

// validFlags tells whether a RegExp can have these flags.
func validFlags(flags string) bool {
	seen := map[rune]bool{}
	for _, f := range flags {
		switch f {
		case 'd', 'g', 'i', 'm', 's', 'u', 'v', 'y':
		default:
			return false
		}
		if seen[f] {
			return false
		}
		seen[f] = true
	}
	return !seen['u'] || !seen['v']
}
