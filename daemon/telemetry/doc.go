// Package telemetry composes what the service says of itself: metrics and traces by the SDK of OpenTelemetry, their
// exporters, and log lines.
//
// The daemon calls it once for each service; parts of the service only get the providers and the logger that it makes.
// It must never touch a provider, a registry or a logger that is global to the process: several services may share one.
// What clients and programs chose is data in it, bounded, never a format, a name of a field or an escape of a terminal.
//
// Goroutines: Telemetry has those of its exporters, which end with Close. Everything may be called by several at once.
package telemetry
