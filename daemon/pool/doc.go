// Package pool runs programs in worker processes: it admits and queues requests, keeps warm workers, bridges each
// execution to its caller, watches it from outside, and ends every one in a typed outcome.
//
// The daemon and Go programs that embed the service call it, through [executor.Executor]. It knows workers only by
// the contract of ipc/worker and starts them only through a [Launcher]. It never trusts a worker: a worker is taken
// to be under the control of the program that it runs. Whatever arrives is checked against the request, every clock
// and the memory are measured from outside as well, and the first breach of the contract costs the worker its life
// and the program its execution, never anyone else theirs. Program text is data: it never becomes a type, a reason or
// a log line's format.
//
// Concurrency: all methods of Pool may be called by several goroutines at once. Each worker process has one goroutine
// that starts it, reads its channel and buries it; each running execution or invocation is watched by the goroutine that
// called Execute or Invoke; one keeper replaces and retires workers, and ends what was retained for long enough. Each tool
// call has a goroutine of its own. Close waits for all of them but tool callbacks that ignore their context.
//
// Locks: Pool.mu guards who waits, runs, idles and is retained; run.mu one execution's bridge; retained.mu what a worker
// was told of invocations. None of them is held while another of them is taken; those that may be taken under them take none
// of them: that of the records under Pool.mu, that of a ledger under run.mu, and under that the one of the clock that the
// ledgers of an isolate share. None is held during a callback, a send that may block, or a system call on a process.
package pool
