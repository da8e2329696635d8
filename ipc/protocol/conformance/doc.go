// Package conformance proves that something is an executor: Run holds an executor.Executor to the contract, whether it
// is the in-process pool or the client of a service, and Replay holds a listener to the transcripts in testdata, which
// any implementation of the protocol in any language can be held to.
//
// Tests call it. It knows nothing of pools and servers, so it names
// no details of theirs: everything that it asks for is in the protocol.
//
// The cases of Run may run at the same time; each has an executor of its own where it changes one.
package conformance
