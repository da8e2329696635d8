// Package fetch performs HTTP exchanges of programs over an http.RoundTripper: what executor.Request.Fetch asks for.
//
// Hosts that answer network "host" use it, and daemon/egress for network "direct". It decides nothing about where a
// request may go: that is the RoundTripper's part. It follows no redirects, keeps no cookies, adds no credentials, and
// passes on only what protocol.FetchHead.Check allows.
//
// Everything may be used by several goroutines at once.
package fetch
