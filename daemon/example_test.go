package daemon_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"

	"github.com/executord/executord/daemon"
	"github.com/executord/executord/daemon/events"
	"github.com/executord/executord/daemon/settings"
	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// The whole service inside another program, on a listener of its own. The worker binary is found beside this program or
// in PATH; Settings.WorkerBinary names another.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		log.Fatal(err)
	}
	s := settings.Defaults()
	s.Workers = 1
	d, err := daemon.New(s, daemon.WithListeners(l), daemon.WithEvents(func(e events.Event) {
		if e.Kind == events.ServiceReady || e.Kind == events.DrainBegan {
			fmt.Println(e.Kind)
		}
	}))
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	if err := d.WaitReady(ctx); err != nil {
		log.Fatal(err)
	}

	c, err := client.Dial(ctx, "unix:"+l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	outcome, err := c.Execute(ctx, executor.Request{Execute: protocol.Execute{Code: "6 * 7"}})
	if err != nil {
		log.Fatal(err)
	}
	_ = c.Close()

	stop() // finishes what runs within Settings.DrainGrace
	err = <-ended
	fmt.Println(string(outcome.Value), err)
	// Output:
	// service_ready
	// drain_began
	// 42 <nil>
}
