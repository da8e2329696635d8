// Package admin is the service's interface for its operator: an HTTP/JSON app on a unix socket of its own, and the client
// that executorctl uses. Both have the same structs. All of the API is the table in routes.go.
//
// The daemon serves it; it is composed from the parts that the operator may look at and act on, which it knows by the
// small interfaces and functions of Config. Who may do what is decided by what the kernel says of the peer, never by what
// a request says. It must never show what a program was given or computed: of an execution there are figures, the ending,
// and the last console lines of one that is asked for by name.
//
// Concurrency: all exported methods may be called by several goroutines at once. Serve owns every goroutine that it
// starts and returns when they have ended.
package admin
