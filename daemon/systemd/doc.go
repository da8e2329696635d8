// Package systemd is everything that the service says to systemd and hears from it: the sockets it was started with, the
// notifications of sd_notify(3), the watchdog, and workers that are units of their own.
//
// The daemon composes it; nobody else calls it. It must never decide what the service does, only tell it and be told,
// and every part of it is idle where systemd did not start the process.
package systemd
