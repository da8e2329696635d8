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

// served is a server that serves a pool.
type served struct {
	*server.Server
	unix, tcp string             // its addresses
	stop      context.CancelFunc // has it drain
	done      chan struct{}      // closed when it has ended
}

// serve serves a pool on a unix socket and on TCP, until the test ends at the latest. It has to end well.
func serve(t *testing.T, p *pool.Pool, cfg server.Config) *served {
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
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Serve(ctx, ls...); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-done
		closeAll(ls)
	})
	return &served{s, "unix:" + path, "tcp://" + ls[1].Addr().(*net.TCPAddr).String(), stop, done}
}

func TestPoolConforms(t *testing.T) {
	if testing.Short() {
		t.Skip("TestClientConforms has a pool too")
	}
	conformance.Run(t, func(t *testing.T) executor.Executor { return newPool(t) })
}

func TestClientConforms(t *testing.T) {
	conformance.Run(t, func(t *testing.T) executor.Executor {
		address := serve(t, newPool(t), server.Config{}).unix
		c, err := client.Dial(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
}

func TestTranscripts(t *testing.T) {
	if testing.Short() {
		t.Skip("TestClientConforms has the same on the wire")
	}
	s := serve(t, newPool(t), server.Config{Version: "test", Limits: pool.Defaults().MaxLimits, ResumeWindow: 10 * time.Second})
	for network, address := range map[string]string{"unix": strings.TrimPrefix(s.unix, "unix:"), "tcp": strings.TrimPrefix(s.tcp, "tcp://")} {
		t.Run(network, func(t *testing.T) {
			conformance.Replay(t, func(ctx context.Context) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, network, address)
			})
		})
	}
}
