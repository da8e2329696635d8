// Executor-worker is the process that programs run in. It is started by executord, or by systemd for it,
// never by hand: it speaks the worker contract on an inherited descriptor.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"

	"github.com/executord/executord/cmd/internal/goruntime"
	"github.com/executord/executord/sandbox"
	"github.com/executord/executord/sandbox/confine"
	"github.com/executord/executord/sandbox/v8"
)

func init() {
	runtime.LockOSThread() // V8 stays on the main thread
	runtime.GOMAXPROCS(4)
}

func main() {
	channel := flag.Int("channel", -1, "descriptor of the `socket` to the parent")
	snapshot := flag.Int("snapshot", -1, "descriptor of the startup `snapshot`")
	makeSnapshot := flag.Bool("make-snapshot", false, "write a startup snapshot to standard output and exit")
	unit := flag.Bool("unit", false, "serve the connection that systemd passed to this unit")
	version := flag.Bool("version", false, "print the engine's version and exit")
	flag.Parse()
	if err := run(*channel, *snapshot, *makeSnapshot, *unit, *version); err != nil {
		fmt.Fprintf(os.Stderr, "executor-worker: %v\n", err)
		os.Exit(sandbox.ExitStatus(err))
	}
}

func run(channel, snapshot int, makeSnapshot, unit, version bool) error {
	switch {
	case version:
		fmt.Println("V8", v8.Version())
		return nil
	case makeSnapshot:
		file, err := sandbox.MakeSnapshot()
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(file)
		return err
	}
	confine.Punctual()
	goruntime.Headroom(32 << 20)
	if unit {
		return sandbox.RunUnit()
	}
	return sandbox.Run(channel, snapshot)
}
