// Package protocol is the executor protocol, version 1: the messages between a host and the service, the rules that a
// request must keep, the provider names, the closed set of error types, and the codec that carries every
// structured-clone value as JSON text.
//
// The daemon, the Go client and everything that implements executor.Executor use it; the sandbox and the JavaScript
// client implement the same codec and are proven against testdata/values.jsonl.
//
// It imports only the standard library, does no input or output, and starts no goroutine. Whatever it parses may come
// from an adversary: every parser takes Bounds or has fixed ones, recurses no deeper than a small multiple of MaxDepth,
// and allocates no more than a small multiple of the text that it was given; Unmarshal adds a bounded number of copies.
// All functions may be called by several goroutines at once; the structs carry no locks.
//
// Raw sub-slices: parsers return parts of their input without copying. Whoever keeps such a part keeps the whole frame
// alive and must not overwrite it.
package protocol
