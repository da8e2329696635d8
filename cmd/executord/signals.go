package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/executord/executord/daemon"
)

// listen takes the signals that obey knows, from the first moment on: without it a reload would end the process.
func listen() <-chan os.Signal {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return signals
}

// obey has signals reload and stop the service.
func obey(d *daemon.Daemon, signals <-chan os.Signal) {
	for s := range signals {
		if s == syscall.SIGHUP {
			go func() { _ = d.Reload("") }() // the log says how it went; a stop must not wait for it
			continue
		}
		d.Stop()
	}
}
