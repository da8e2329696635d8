// Package sandbox runs programs inside a worker process: one at a time, each in a fresh V8 isolate restored from the
// startup snapshot before work arrives, with the limits that can be enforced from inside the process.
//
// It is called by cmd/executor-worker and meets the rest of the product only in ipc. It never opens a file or a socket
// once it serves, and it trusts neither the program it runs nor that V8 will stop when told to: what the engine cannot
// interrupt is ended by the end of the process, and behind that stands the supervisor of daemon/pool.
//
// Concurrency: the goroutine of Serve is pinned to one OS thread and is the only one that touches an isolate. It also
// reads the channel whenever it waits. A lookout (clocks, and the channel while a program keeps that thread) and a heart
// (heartbeats) run beside it; they reach the isolate by Terminate alone.
package sandbox
