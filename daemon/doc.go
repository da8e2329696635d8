// Package daemon composes the service: settings, worker pool, server and their lifecycle. cmd/executord runs it; another
// program may, with New and Run.
//
// It must never import the sandbox: programs run in worker processes, which it knows by path only. It keeps nothing in
// variables of the package and changes nothing that belongs to the process (signals, mask, environment, working folder):
// any number of services live in one process.
//
// Run goes through the states of package lifecycle. Boot: workers start, one real program is run as a self-check, the
// listeners are opened; only then /readyz says yes. Stop: first readiness turns callers away for the drain delay, while
// everything is served; then sessions are told, what waits is refused, and what runs has its grace; each connection gets
// its outcomes and then its end. A second request to stop makes delay and grace short, a third ends at once, as does the
// stop timeout.
//
// Goroutines: Run owns everything that it starts and returns when all of it has ended, unless it was cut short. All
// methods of Daemon may be called by several goroutines at once.
package daemon
