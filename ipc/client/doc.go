// Package client runs programs on a remote executord: it is the executor.Executor over the executor protocol.
//
// Programs that use the service import it, and so does executorctl. It must never look into a Value, never run a tool
// twice, and never send an execution twice.
//
// Goroutines: a Client may be used by many. Per connection one goroutine reads and one writes (package channel). Every
// tool call runs on its own goroutine; the callbacks OnLog and OnState run on the goroutine that called Execute. A tool
// that is stuck therefore holds up neither the connection nor other calls. Close waits for all of them, so a tool must
// heed its context.
package client
