package e2e

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/executord/executord/daemon/admin"
	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/testlog"
)

const (
	balancedToken   = "0123456789abcdef"
	balancedCallers = 2 // as many workers has each service
)

// TestRestartsBehindHAProxy: two services behind a real HAProxy, with the configuration that is shipped, are restarted in
// their turn under load. Every execution has its one outcome and was run once, and none is turned away, whether the services
// give HAProxy the time to notice or not: the client goes on over another session, which HAProxy opens elsewhere.
func TestRestartsBehindHAProxy(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	t.Parallel() // most of it is waiting
	for _, delay := range []string{"4s", "0s"} {
		t.Run("delay "+delay, func(t *testing.T) {
			t.Parallel()
			b := newBalance(t, delay)
			load := b.traffic()
			for _, one := range b.services {
				load.more()
				b.restart(one, load)
				load.more()
			}
			load.stop()
			load.judge()
		})
	}
}

// TestMaintenanceBehindHAProxy: a service takes no session any more, and HAProxy has not noticed. It asks the other one.
func TestMaintenanceBehindHAProxy(t *testing.T) {
	t.Parallel()
	b := newBalance(t, "0s")
	one := b.services[0]
	operator := one.operator()
	if _, err := operator.EnterMaintenance(t.Context(), admin.EnterMaintenance{Reason: "a new disk"}); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		c := b.dial()
		if o := run(t, c, program("1")); o.Err() != nil {
			t.Fatalf("execution %d: %v", i, o.Err())
		}
		_ = c.Close()
	}
	if b.stat(one, "wretr")+b.stat(one, "wredis") == "00" {
		t.Error("no session was given to the service")
	}
	if !within(30*time.Second, func() bool { return b.stat(one, "status") == "DOWN" }) {
		t.Errorf("HAProxy has the service as %q", b.stat(one, "status"))
	}
	if _, err := operator.LeaveMaintenance(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.untilUp(one)
}

// operator is a client of the service's admin socket.
func (s *service) operator() *admin.Client {
	s.tb.Helper()
	c, err := admin.NewClient("unix:" + filepath.Join(filepath.Dir(strings.TrimPrefix(s.address, "unix:")), "admin.sock"))
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(c.Close)
	return c
}

// balance is HAProxy and what is behind it.
type balance struct {
	t        *testing.T
	proxy    *service // its process only
	address  string   // for callers
	control  string   // HAProxy's own socket
	services []*balanced
}

// balanced is a service that is known to HAProxy. Each start is a process of its own.
type balanced struct {
	*service
	name  string // HAProxy's
	tcp   string
	again func() *service
}

func newBalance(t *testing.T, delay string) *balance {
	t.Helper()
	if _, err := exec.LookPath("haproxy"); err != nil {
		t.Skip("haproxy is not installed")
	}
	b := &balance{t: t, address: freeAddress(t), control: filepath.Join(t.TempDir(), "control")}
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("caller "+balancedToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		tcp := freeAddress(t)
		again := func() *service {
			return start(t, testbin.Worker(t), "--listen", "tcp://"+tcp, "--token-file", tokens, "--workers", strconv.Itoa(balancedCallers), "--queue", "1000",
				"--drain-delay", delay, "--drain-grace", "30s")
		}
		b.services = append(b.services, &balanced{service: again(), name: name, tcp: tcp, again: again})
	}
	b.startProxy()
	for _, s := range b.services {
		b.untilUp(s)
	}
	return b
}

// freeAddress is one that nobody listened on just now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startProxy runs HAProxy as shipped, but for what only root may do.
func (b *balance) startProxy() {
	b.t.Helper()
	text, err := os.ReadFile("../../packaging/haproxy/haproxy.cfg")
	if err != nil {
		b.t.Fatal(err)
	}
	if os.Getuid() != 0 {
		text = regexp.MustCompile(`(?m)^ +(user|group|chroot) .*$`).ReplaceAll(text, nil)
	}
	path := filepath.Join(b.t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		b.t.Fatal(err)
	}
	p := &service{tb: b.t, log: &testlog.Buffer{}, cmd: exec.Command("haproxy", "-db", "-f", path)}
	p.cmd.Env = append(os.Environ(), "EXECUTORD_BIND="+b.address, "HAPROXY_CONTROL="+b.control,
		"EXECUTORD_1="+b.services[0].tcp, "EXECUTORD_2="+b.services[1].tcp)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.proxy = p
	b.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		if b.t.Failed() {
			usual := regexp.MustCompile(`(?m)^.* 101 .*\n`) // sessions that it opened
			b.t.Logf("haproxy said:\n%s", usual.ReplaceAllString(p.log.String(), ""))
		}
	})
}

// stat is a figure of HAProxy about a service, empty when it does not answer.
func (b *balance) stat(s *balanced, field string) string {
	conn, err := net.Dial("unix", b.control)
	if err != nil {
		return ""
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "show stat\n"); err != nil {
		return ""
	}
	rows, err := csv.NewReader(conn).ReadAll()
	if err != nil {
		return ""
	}
	for _, row := range rows {
		for i, name := range rows[0] {
			if name == field && row[0] == "executord" && row[1] == s.name {
				return row[i]
			}
		}
	}
	return ""
}

func (b *balance) untilUp(s *balanced) {
	b.t.Helper()
	if !within(30*time.Second, func() bool { return b.stat(s, "status") == "UP" }) {
		b.t.Fatalf("HAProxy has service %s as %q: %s", s.name, b.stat(s, "status"), b.proxy.log)
	}
}

// restart stops a service while executions run on it, which end only when it takes nothing new any more, and starts it
// again. It returns when HAProxy knows.
func (b *balance) restart(s *balanced, l *traffic) {
	b.t.Helper()
	l.gate.Lock()
	held := l.hold()
	l.gate.Unlock()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.t.Fatal(err)
	}
	web := s.web()
	if !within(30*time.Second, func() bool { return refuses(web) }) {
		b.t.Fatal("the service does not drain")
	}
	if n := s.active(); n == 0 {
		b.t.Errorf("nothing ran on service %s when it was stopped", s.name)
	}
	held.release()
	if err := s.cmd.Wait(); err != nil {
		b.t.Errorf("executord ended with %v", err)
	}
	s.service = s.again()
	b.untilUp(s)
}

// refuses tells that a service takes nothing new.
func refuses(web *http.Client) bool {
	resp, err := web.Post("http://localhost/v1/execute", "application/json", strings.NewReader(`{"code":"1"}`))
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(body), `"draining"`)
}

// active is how many executions run.
func (s *balanced) active() (n int) {
	_, page := s.scrape("text/plain")
	if m := regexp.MustCompile(`(?m)^executord_execution_active(?:\{.*\})? (\d+)$`).FindStringSubmatch(page); m != nil {
		n, _ = strconv.Atoi(m[1])
	}
	return n
}

// dial opens a session through HAProxy.
func (b *balance) dial() *client.Client {
	b.t.Helper()
	c, err := client.Dial(b.t.Context(), "tcp://"+b.address, client.WithToken(balancedToken))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}

// held are executions that wait for a tool.
type held struct {
	free chan struct{}
	all  sync.WaitGroup
}

// hold begins an execution of each caller and returns when each has called its tool. Sessions are spread over the services
// at first, and after a restart all where there was none.
func (l *traffic) hold() *held {
	b, h := l.b, &held{free: make(chan struct{})}
	var called sync.WaitGroup
	for i, c := range l.clients {
		called.Add(1)
		var calls atomic.Int64
		r := program(fmt.Sprintf("await tools.wait(); return %d", i))
		r.Provide(executor.Provider{Name: "tools", Tools: map[string]executor.Tool{"wait": func(context.Context, []protocol.Value) (protocol.Value, error) {
			if calls.Add(1) == 1 {
				called.Done()
			}
			<-h.free
			return nil, nil
		}}})
		h.all.Go(func() {
			o, err := c.Execute(b.t.Context(), r)
			if err != nil || string(o.Value) != strconv.Itoa(i) || calls.Load() != 1 {
				b.t.Errorf("an execution that ran over the stop was run %d times and ended with %+v, %v", calls.Load(), o, err)
			}
		})
	}
	called.Wait()
	return h
}

func (h *held) release() {
	close(h.free)
	h.all.Wait()
}

// traffic is many short executions of several callers.
type traffic struct {
	b       *balance
	clients []*client.Client
	gate    sync.RWMutex // held for reading by each execution
	over    context.CancelFunc
	all     sync.WaitGroup
	ended   atomic.Int64 // executions

	mu       sync.Mutex
	failures []string
}

func (b *balance) traffic() *traffic {
	ctx, over := context.WithCancel(b.t.Context())
	l := &traffic{b: b, over: over}
	for n := range balancedCallers {
		c := b.dial()
		l.clients = append(l.clients, c)
		l.all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				l.gate.RLock()
				l.one(c, 1000*i+n)
				l.gate.RUnlock()
			}
		})
	}
	b.t.Cleanup(l.stop)
	return l
}

// one runs a program that calls a tool with its own number, and judges what comes of it.
func (l *traffic) one(c *client.Client, number int) {
	var calls atomic.Int64
	r := program("async (n) => await tools.twice(n) + 1")
	r.Input = protocol.Value(strconv.Itoa(number))
	r.Provide(executor.Provider{Name: "tools", Tools: map[string]executor.Tool{"twice": executor.Func(func(n int) int {
		calls.Add(1)
		return 2 * n
	})}})
	o, err := c.Execute(context.Background(), r)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.failures = append(l.failures, fmt.Sprintf("execution %d: %v", number, err))
	case o.Err() != nil || string(o.Value) != strconv.Itoa(2*number+1):
		l.failures = append(l.failures, fmt.Sprintf("execution %d: %s, %v", number, o.Value, o.Err()))
	case calls.Load() != 1:
		l.failures = append(l.failures, fmt.Sprintf("execution %d was run %d times", number, calls.Load()))
	}
	l.ended.Add(1)
}

// more waits until each caller may have had some outcomes more.
func (l *traffic) more() {
	l.b.t.Helper()
	want := l.ended.Load() + 20*balancedCallers
	if !within(60*time.Second, func() bool { return l.ended.Load() >= want }) {
		l.b.t.Errorf("only %d executions have ended", l.ended.Load())
	}
}

func (l *traffic) stop() {
	l.over()
	l.all.Wait()
}

func (l *traffic) judge() {
	for _, f := range l.failures[:min(len(l.failures), 20)] {
		l.b.t.Error(f)
	}
	for _, s := range l.b.services {
		if l.b.stat(s, "stot") == "0" {
			l.b.t.Errorf("HAProxy gave service %s nothing", s.name)
		}
	}
	l.b.t.Logf("%d executions, %d failed", l.ended.Load(), len(l.failures))
}
