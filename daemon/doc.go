// Package daemon composes the service: settings, worker pool, server and their lifecycle. cmd/executord runs it; another
// program may.
//
// It must never import the sandbox: programs run in worker processes, which it knows by path only.
//
// Goroutines: Run owns everything that it starts and returns when all of it has ended.
package daemon
