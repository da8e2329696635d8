// Package worker is the contract between the pool and a worker process, and the transport that both ends speak it
// over: one stream socket per worker that carries length-prefixed frames.
//
// The pool (daemon/pool) holds the [Parent] side, the sandbox (cmd/executor-worker) the [Worker] side. The package
// only moves messages: it keeps no clocks but the one on a stuck write, decides nothing about an execution, and
// imports nothing of the project but ipc/nowait. Each side takes the other for hostile: what arrives is bounded before
// it is read, and whatever is not exactly a message of the other side is a [*FrameError].
//
// The life of a worker on the wire: Hello, Ready, then for each execution an Execute, any number of Log, ToolCall, Fetch,
// FetchRead, FetchCancel and ToolResult, a Result, and Ready again. Heartbeat and LastWord come at any time after Hello. A
// worker drops a ToolResult or Cancel whose execution already ended, for the two cross a Result on their way.
package worker
