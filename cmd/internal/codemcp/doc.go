// Package codemcp is an MCP server whose one tool runs code, and whose programs call the tools of other MCP servers.
//
// Executorctl mcp calls it, and is the only program that links the SDK of the Model Context Protocol. Clients, the servers
// behind it and programs are hostile to it and to each other: what they send is bounded, names are made safe, and nothing that
// a server says becomes anything but a tool, a type or a value. It must never run a tool that the configuration keeps
// from programs, or without asking where it says so, and never let a server see more than its own calls.
//
// It speaks the protocol of before 2026-07-28: later ones have no requests by servers, and a program that waits for an
// approval cannot be started again from the beginning.
//
// Concurrency: a Server runs any number of programs at once. New and Run are called by one goroutine.
package codemcp
