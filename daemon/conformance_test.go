package daemon

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/daemon/executor"
	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/daemon/server"
	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/protocol/conformance"
	"github.com/executord/executord/ipc/testbin"
)

func TestMain(m *testing.M) { os.Exit(testbin.MainInPath(m)) }

// newPool is a pool of real workers.
func newPool(t *testing.T, tune ...func(*pool.Config)) *pool.Pool {
	t.Helper()
	c := executor.Config{WorkerBinary: testbin.Worker(t), Workers: 2, Tune: func(c *pool.Config) {
		c.Queue, c.QueuePerIdentity, c.SpawnTimeout = 64, 64, time.Minute
		for _, f := range tune {
			f(c)
		}
	}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := executor.New(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// serve serves a pool on a unix socket and on TCP until the test ends, and returns both addresses.
func serve(t *testing.T, p *pool.Pool, cfg server.Config) (unix, tcp string) {
	t.Helper()
	s, err := server.New(p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s")
	addresses, err := parseAddresses([]string{"unix:" + path, "tcp://127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ls, err := listenAll(addresses)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve(ctx, ls...) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		closeAll(ls)
	})
	return "unix:" + path, "tcp://" + ls[1].Addr().(*net.TCPAddr).String()
}

func TestPoolConforms(t *testing.T) {
	conformance.Run(t, func(t *testing.T) executor.Executor { return newPool(t) })
}

func TestClientConforms(t *testing.T) {
	conformance.Run(t, func(t *testing.T) executor.Executor {
		address, _ := serve(t, newPool(t), server.Config{})
		c, err := client.Dial(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
}

func TestTranscripts(t *testing.T) {
	unix, tcp := serve(t, newPool(t), server.Config{Version: "test", Limits: pool.Defaults().MaxLimits, ResumeWindow: 10 * time.Second})
	for network, address := range map[string]string{"unix": strings.TrimPrefix(unix, "unix:"), "tcp": strings.TrimPrefix(tcp, "tcp://")} {
		t.Run(network, func(t *testing.T) {
			conformance.Replay(t, func(ctx context.Context) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, network, address)
			})
		})
	}
}
