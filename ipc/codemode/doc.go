// Package codemode is an executor of the dialect of @cloudflare/codemode over any executor.Executor: what hosts in
// JavaScript have in packaging/npm/src/codemode, for hosts in Go. Both are held to the same rows, and what they do otherwise
// than the reference is in docs/codemode-deviations.md.
//
// Hosts that speak the dialect call it, as does executorctl mcp. Code, names, arguments and schemas are hostile to it: all
// are read within bounds. It must never run code itself, never report a failure of a program as a Go error or as a success,
// and never let a program reach anything of the host but the tools that it is given.
//
// Concurrency: everything may be used by several goroutines at once; nothing is kept in variables of the package.
package codemode
