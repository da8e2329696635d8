package systemd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/daemon/lifecycle"
)

// hearing is the manager's end of the notify socket.
func hearing(t *testing.T, address string) *net.UnixConn {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	t.Setenv("NOTIFY_SOCKET", address)
	return c
}

func heard(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	buf := make([]byte, 4096)
	n, err := c.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}

// S11, S17: each transition is one datagram, with the monotonic clock where it is needed, to paths and abstract names.
func TestS11S17Notifications(t *testing.T) {
	for name, address := range map[string]string{
		"path":     filepath.Join(t.TempDir(), "notify"),
		"abstract": fmt.Sprintf("@executord-test-%d", os.Getpid()),
	} {
		t.Run(name, func(t *testing.T) {
			c, m := hearing(t, address), lifecycle.New()
			n := Follow(m.Subscribe, slog.New(slog.DiscardHandler))
			expect := func(pattern string) {
				t.Helper()
				if got := heard(t, c); !regexp.MustCompile("^(?s:" + pattern + ")$").MatchString(got) {
					t.Errorf("heard %q, want %q", got, pattern)
				}
			}
			fire := func(e lifecycle.Event, reason string) {
				t.Helper()
				if _, err := m.Fire(e, reason, ""); err != nil {
					t.Fatal(err)
				}
			}
			expect("STATUS=Starting workers")
			fire(lifecycle.WorkersReady, "")
			expect("STATUS=Checking that a program runs")
			fire(lifecycle.CheckPassed, "")
			expect("STATUS=Opening sockets")
			fire(lifecycle.Opened, "")
			expect("READY=1\nSTATUS=Serving")
			n.Status("Serving, but\nbusy\x1b")
			expect("STATUS=Serving, but busy ")
			fire(lifecycle.ReloadBegan, "")
			got := heard(t, c)
			clock := regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=(\d+)\nSTATUS=Serving$`).FindStringSubmatch(got)
			if clock == nil {
				t.Fatalf("heard %q", got)
			}
			var now unix.Timespec
			_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
			if at, _ := strconv.ParseInt(clock[1], 10, 64); at > now.Nano()/1000 || at < now.Nano()/1000-60e6 {
				t.Errorf("clock is %d, the monotonic one %d", at, now.Nano()/1000)
			}
			fire(lifecycle.ReloadEnded, "no\nsuch setting")
			expect("READY=1\nSTATUS=Serving; reload failed: no such setting")
			fire(lifecycle.MaintenanceEntered, "new disk")
			expect("READY=1\nSTATUS=In maintenance: what is new is refused .new disk.")
			fire(lifecycle.MaintenanceLeft, "")
			expect("READY=1\nSTATUS=Serving")
			fire(lifecycle.Stop, "")
			expect("STOPPING=1\nEXTEND_TIMEOUT_USEC=10000000\nSTATUS=Stopping: callers.*")
			fire(lifecycle.DelayOver, "")
			expect("STATUS=Stopping: waiting for running programs")
			n.Close()
			n.Close()
			n.Status("late")
			if os.Getenv("NOTIFY_SOCKET") == "" {
				t.Error("the address was taken out of the environment")
			}
		})
	}
}

func TestNoManager(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	n := Follow(lifecycle.New().Subscribe, slog.New(slog.DiscardHandler))
	n.Status("x")
	n.Close()
	Watchdog(t.Context(), func(context.Context) error { t.Error("asked"); return nil }, slog.New(slog.DiscardHandler))
	if ls, err := Listeners(); len(ls) > 0 || err != nil {
		t.Errorf("got %v, %v", ls, err)
	}
}

func TestEveryStateHasWords(t *testing.T) {
	for _, s := range lifecycle.States() {
		if stateWords[s] == "" {
			t.Errorf("%s has none", s)
		}
	}
}

// S15: a sign of life needs life: one that fails, or comes late, is not given.
func TestS15WatchdogNeedsLife(t *testing.T) {
	c := hearing(t, filepath.Join(t.TempDir(), "notify"))
	t.Setenv("WATCHDOG_USEC", "300000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	ctx, cancel := context.WithCancel(t.Context())
	asked, answers := make(chan struct{}), make(chan error)
	ended := make(chan struct{})
	var log strings.Builder
	go func() {
		defer close(ended)
		Watchdog(ctx, func(ctx context.Context) error {
			asked <- struct{}{}
			select {
			case err := <-answers:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}, slog.New(slog.NewTextHandler(&log, nil)))
	}()
	for range 2 {
		<-asked
		answers <- nil
		if got := heard(t, c); got != "WATCHDOG=1" {
			t.Errorf("heard %q", got)
		}
	}
	<-asked
	answers <- errors.New("stuck")
	<-asked // this one is never answered
	<-asked
	answers <- nil
	if got := heard(t, c); got != "WATCHDOG=1" {
		t.Errorf("heard %q", got)
	}
	<-asked
	cancel()
	<-ended
	if n := strings.Count(log.String(), "no sign of life"); n != 2 {
		t.Errorf("%d complaints:\n%s", n, log.String())
	}
}
