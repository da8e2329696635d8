package admin

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/executord/executord/daemon/events"
	inprocess "github.com/executord/executord/daemon/executor"
	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/daemon/server"
	"github.com/executord/executord/daemon/settings"
	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

func TestMain(m *testing.M) {
	if probe := os.Getenv("EXECUTORD_TEST_PROBE"); probe != "" {
		os.Exit(runProbe(probe))
	}
	os.Exit(testbin.Main(m))
}

// service is the rest of a service, as far as the app looks at it.
type service struct {
	mu     sync.Mutex
	now    Maintenance
	reload error
}

func (s *service) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return State{Name: "ready", Since: time.Now(), Ready: !s.now.Active}
}

func (s *service) Maintenance() Maintenance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *service) EnterMaintenance(who string, m EnterMaintenance) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Reason == "refuse" {
		return errors.New("the service is stopping")
	}
	at := time.Now()
	s.now = Maintenance{Active: true, Reason: m.Reason, Who: who, Since: &at, Persistent: m.Persistent}
	return nil
}

func (s *service) LeaveMaintenance(string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = Maintenance{}
	return nil
}

func (s *service) Reload(string) (Reload, error) {
	return Reload{Applied: []string{"log-level"}}, s.reload
}

// bench is an app over a real pool, a real server and real workers.
type bench struct {
	*Client
	t       *testing.T
	app     *App
	service *service
	ring    *events.Ring
	level   *slog.LevelVar
	pool    *pool.Pool
	socket  string // of the app
	calls   *client.Client
	dial    func(context.Context) (executor.Executor, string, error)
	stop    func()
}

// start runs an app. change may change its configuration.
func start(t *testing.T, change func(*bench, *Config)) *bench {
	t.Helper()
	b := &bench{t: t, service: &service{}, ring: events.New(events.Size), level: &slog.LevelVar{}}
	feed := events.NewFeed(b.ring)
	p, err := inprocess.New(t.Context(), inprocess.Config{
		WorkerBinary: testbin.Worker(t), Workers: 1,
		Tune: func(c *pool.Config) { c.Spares, c.SpawnTimeout, c.OnEvent = 0, time.Minute, feed.Pool },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.pool = p
	t.Cleanup(func() { _ = p.Close() })
	b.serve(p)
	loaded, err := settings.Load([]string{"--worker-binary", testbin.Worker(t)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Version: "test", Pool: p, Service: b.service, Settings: loaded.List, Events: b.ring, LogLevel: b.level,
		Sessions: func() []Session {
			return []Session{{ID: "s", Identity: "uid:0", State: "open", Since: time.Now(), Executions: 1}}
		},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = w.Write([]byte("up 1\n"))
		}),
		Dial: b.dial,
	}
	if testing.Verbose() {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	if change != nil {
		change(b, &cfg)
	}
	b.listen(cfg)
	return b
}

// serve serves the protocol, as the daemon does.
func (b *bench) serve(p *pool.Pool) {
	b.t.Helper()
	s, err := server.New(p, server.Config{})
	if err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(b.t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve(ctx, l) }()
	b.dial = func(ctx context.Context) (executor.Executor, string, error) {
		c, err := client.Dial(ctx, "unix:"+path)
		if err != nil {
			return nil, "unix:" + path, err
		}
		return c, "unix:" + path, nil
	}
	if b.calls, err = client.Dial(b.t.Context(), "unix:"+path); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = b.calls.Close(); stop(); <-stopped })
}

func (b *bench) listen(cfg Config) {
	b.t.Helper()
	var err error
	if b.app, err = New(cfg); err != nil {
		b.t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "executord-admin") // one that other users may enter
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b.socket = filepath.Join(dir, "a")
	l, err := net.Listen("unix", b.socket)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(b.socket, 0o666), os.Chmod(dir, 0o755)); err != nil {
		b.t.Fatal(err)
	}
	if b.Client, err = NewClient("unix:" + b.socket); err != nil {
		b.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- b.app.Serve(ctx, l) }()
	b.stop = sync.OnceFunc(func() {
		stop()
		if err := <-stopped; err != nil {
			b.t.Error(err)
		}
	})
	b.t.Cleanup(b.stop)
}

// run begins a program and returns once it runs; the outcome comes by the channel.
func (b *bench) run(id, code string) <-chan *protocol.Outcome {
	b.t.Helper()
	began, ended := make(chan struct{}), make(chan *protocol.Outcome, 1)
	r := executor.Request{Execute: protocol.Execute{Execution: id, Code: code, Name: "task.js"}}
	r.OnState = func(s protocol.State) {
		if s.State == protocol.StateRunning {
			close(began)
		}
	}
	go func() {
		o, err := b.calls.Execute(context.Background(), r)
		if err != nil {
			b.t.Error(err)
		}
		ended <- o
	}()
	select {
	case <-began:
	case <-time.After(20 * time.Second):
		b.t.Fatal("the program does not run")
	}
	return ended
}
