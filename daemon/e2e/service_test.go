package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/executord/executord/daemon/e2e/gauge"
	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/testlog"
)

// service is a running executord process.
type service struct {
	tb      testing.TB
	cmd     *exec.Cmd
	address string
	args    []string // without the listener
	log     *testlog.Buffer
}

func TestMain(m *testing.M) { os.Exit(testbin.Main(m)) }

// start runs executord with the given worker and waits until it serves.
func start(tb testing.TB, workerBinary string, args ...string) *service {
	tb.Helper()
	s := &service{
		tb: tb, address: "unix:" + filepath.Join(tb.TempDir(), "s"), args: append([]string{"--worker-binary", workerBinary}, args...),
		log: &testlog.Buffer{},
	}
	s.begin()
	tb.Cleanup(s.stop)
	return s
}

// begin runs the process, for the first time or again, and waits until it serves.
func (s *service) begin() {
	s.tb.Helper()
	s.cmd = exec.Command(testbin.Executord(s.tb), append([]string{"--listen", s.address}, s.args...)...)
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		s.tb.Fatal(err)
	}
	s.dial().Close()
}

func (s *service) stop() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	s.cmd.Wait()
	if s.tb.Failed() {
		s.tb.Logf("executord said:\n%s", s.log.String())
	}
}

// dial connects, waiting until the service listens.
func (s *service) dial() *client.Client {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		c, err := client.Dial(ctx, s.address)
		if err == nil {
			return c
		}
		select {
		case <-ctx.Done():
			s.tb.Fatalf("cannot reach the service: %v\n%s", err, s.log.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// tcp is the address of the TCP socket that --listen asked for, as the service tells it.
func (s *service) tcp() string {
	s.tb.Helper()
	said := regexp.MustCompile(`address=(\S+:\d+)\s`)
	if !within(30*time.Second, func() bool { return said.MatchString(s.log.String()) }) {
		s.tb.Fatalf("the service does not listen on TCP:\n%s", s.log.String())
	}
	return said.FindStringSubmatch(s.log.String())[1]
}

// workers are the process ids of the service's workers.
func (s *service) workers() []int { return children(s.cmd.Process.Pid) }

// children are those of a process that run.
func children(parent int) []int {
	return slices.DeleteFunc(gauge.Children(parent), func(pid int) bool { return !testbin.Alive(pid) })
}

func descriptors(pid int) int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries)
}

// within waits for a condition; it polls, since the condition is another process's.
func within(d time.Duration, ok func() bool) bool {
	for deadline := time.Now().Add(d); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return ok()
}

// run runs one program and fails the test if it could not be run at all.
func run(tb testing.TB, c executor.Executor, r executor.Request) *protocol.Outcome {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	o, err := c.Execute(ctx, r)
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

func program(code string) executor.Request {
	return executor.Request{Execute: protocol.Execute{Code: code}}
}

// echo is a provider that answers with what it is given.
func echo() executor.Provider {
	return executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
		"echo": func(_ context.Context, args []protocol.Value) (protocol.Value, error) {
			if len(args) == 0 {
				return nil, nil
			}
			return args[0], nil
		},
	}}
}
