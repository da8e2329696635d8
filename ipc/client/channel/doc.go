// Package channel carries the messages of the executor protocol over one WebSocket (RFC 6455): the listener in
// daemon/server and the dialler in ipc/client both speak through it.
//
// It owns the parts that are easy to get wrong and the same at both ends. One goroutine writes to the connection;
// everybody else hands messages to a queue that is bounded in bytes. Small messages that are queued together leave in
// one system call. A long message is sent in fragments with control frames between them, so that a slow reader still
// hears pings. Deadlines count progress and not the time of a message: a peer that reads slowly stays, one that stops
// is dropped. Received messages are bounded before they are read, also after decompression.
//
// It must never look into a message.
//
// Concurrency: Send, TrySend, Close, Abort and Done may be called from any goroutine. Receive belongs to one goroutine,
// which calls it until it fails; Conn then frees everything by itself and closes Done.
package channel
