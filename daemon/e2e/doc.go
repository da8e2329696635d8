// Package e2e tests the whole path as its users walk it: a real executord process with real workers, and the Go client
// over a real WebSocket. It has no code of its own but what its tests and benchmarks share.
package e2e
