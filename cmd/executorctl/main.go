// Executorctl runs programs through executord, or without it in a worker of its own.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set when the program is built.
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(execute(ctx, os.Args[1:], system()))
}
