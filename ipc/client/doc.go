// Package client runs programs on a remote executord: it is the executor.Executor over the executor protocol.
//
// Programs that use the service import it, and so does executorctl. It must never look into a Value, never run a tool
// twice, and never send an execution twice unless the first is known not to have been accepted.
//
// A session with the service outlives its connection where the service keeps lost ones: the client connects again, by
// pauses that grow and differ, and both sides send what the other has not got. Sessions that drain, or that are past
// their age, are left: new executions go to another, and what runs is finished where it is. What is retained in such a
// session keeps it until its end, and is called there. A service that is stopping when it is asked for a session is asked
// again, since another may take its place.
//
// Goroutines: a Client may be used by many. Per session one goroutine reads, over all its connections, and per connection
// one writes (package channel); one connects where there is no session. Every tool call runs on its own goroutine; the
// callbacks OnLog and OnState run on the goroutine that called Execute or Invoke. A tool that is stuck therefore holds up
// neither the connection nor other calls. Close waits for all of them, so a tool must heed its context.
package client
