// Package server is the service's end of the executor protocol: it serves any executor.Executor over HTTP and
// WebSocket, on unix sockets and TCP.
//
// The daemon calls it; a program that embeds the pool may. It decides who may connect and how much one caller may hold,
// and turns messages into calls of the Executor. It must never look into a Value, which it relays as opaque bytes, must
// never let what a client sends choose a log line's format, and knows nothing of pools and workers.
//
// Goroutines: the HTTP server's goroutine of a session reads its messages; channel.Conn writes them; every execution
// and every tool call has its own. A session waits for all of its executions before it ends, and Server.Drain waits for
// all sessions. All exported methods may be called by several goroutines at once.
package server
