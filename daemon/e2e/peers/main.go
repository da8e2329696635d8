// Command peers measures executord beside other ways to run a program that calls tools: isolated-vm, workerd with
// DynamicWorkerExecutor, and quickjs-emscripten. `make bench-peers` runs it; nothing else does, and it is never packaged.
//
// It starts a real executord with real workers, asks it over its WebSocket, and lets the peers take turns with it, so that
// the ratios mean something on a machine that does other things too. The peers come from npm, by the lock file here, into
// the user's cache folder. Where they cannot be had it says so and measures executord alone.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/executord/executord/daemon/e2e/gauge"
)

func main() {
	if name := os.Getenv(hopEnv); name != "" {
		hop(name)
		return
	}
	bin := flag.String("bin", "bin", "folder of executord and executor-worker")
	turns := flag.Int("turns", 5, "turns of each engine, 1 at least")
	budget := flag.Duration("budget", 140*time.Second, "begin no turn that would end after this time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // a reader that leaves must not leave executord behind
	if err := run(ctx, *bin, *turns, *budget); err != nil {
		fmt.Fprintf(os.Stderr, "peers: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin string, turns int, budget time.Duration) error {
	ours, err := startExecutord(ctx, bin)
	if err != nil {
		return err
	}
	defer ours.stop()
	engines := []*engine{ours}
	if peers, stop, err := startPeers(ctx); err != nil {
		fmt.Printf("peers skipped: %v\n\n", err)
	} else {
		defer stop()
		engines = append(engines, peers...)
	}
	loads := []float64{gauge.Load()}
	f, err := measure(ctx, engines, turns, budget, func() { loads = append(loads, gauge.Load()) })
	if err != nil {
		return err
	}
	least, err := measureFloor(ctx)
	if err != nil {
		return err
	}
	return writeReport(os.Stdout, engines, f, loads, least)
}

// startPeers installs and starts every peer, or none. The function it returns ends them.
func startPeers(ctx context.Context) (peers []*engine, stop func(), err error) {
	h, err := install(ctx)
	if err != nil {
		return nil, nil, err
	}
	stop = func() {
		for _, p := range peers {
			p.stop()
		}
		h.remove()
	}
	for _, start := range []func(context.Context, *home) (*engine, error){startIsolatedVM, startWorkerd, startQuickJS} {
		p, err := start(ctx, h)
		if err != nil {
			stop()
			return nil, nil, err
		}
		peers = append(peers, p)
	}
	return peers, stop, nil
}
