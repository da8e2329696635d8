// Package lifecycle is the state machine of the service: which states there are, which events, and what each event makes
// of each state. The table in table.go is the whole of it.
//
// The daemon fires the events; whoever has to tell the world (service manager, admin app, event stream) subscribes. It
// must never do anything itself: it knows no listeners, workers, clocks or signals.
//
// Goroutines: all methods of Machine may be called by several at once. Observers are called one after the other, in the
// order of the transitions, on the goroutine that fired.
package lifecycle
