package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"github.com/executord/executord/daemon/lifecycle"
)

const (
	// extendBy is asked for while the service drains, every half of it, so that the manager does not take a long drain
	// for one that hangs. What bounds a drain is the setting stop-timeout.
	extendBy = 10 * time.Second
	// maxStatus bounds what STATUS= says.
	maxStatus = 256
	// flushGrace is how long Close waits for the manager to take what was said.
	flushGrace = time.Second
)

// Notifier tells the service manager what the service does (sd_notify(3)). It says everything in order on a goroutine of
// its own, since the manager may be slow to listen.
type Notifier struct {
	log      *slog.Logger
	messages chan string
	done     chan struct{}
	leave    func()
	mu       sync.Mutex
	closed   bool
}

// Follow begins to tell the manager of a service that is about to start, by its subscribe; nil when there is no manager.
// Close ends it.
func Follow(subscribe func(func(lifecycle.Transition)) (unsubscribe func()), log *slog.Logger) *Notifier {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil
	}
	n := &Notifier{log: log, messages: make(chan string, 64), done: make(chan struct{})}
	go n.speak()
	n.say(status(stateWords[lifecycle.Booting]))
	n.leave = subscribe(func(t lifecycle.Transition) { n.say(message(t)) })
	return n
}

// Status has the manager show a text until the next transition.
func (n *Notifier) Status(text string) {
	if n != nil {
		n.say(status(text))
	}
}

// Close says what is left to say. It may be called on nil.
func (n *Notifier) Close() {
	if n == nil {
		return
	}
	n.leave()
	n.mu.Lock()
	if !n.closed {
		n.closed = true
		close(n.messages)
	}
	n.mu.Unlock()
	await(n.done, flushGrace)
}

// say never waits: the manager would have to be deaf for many transitions.
func (n *Notifier) say(message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	select {
	case n.messages <- message:
	default:
		n.log.Warn("the service manager does not listen", "unsaid", message)
	}
}

func (n *Notifier) speak() {
	defer close(n.done)
	var draining <-chan time.Time
	for {
		select {
		case text, ok := <-n.messages:
			if !ok {
				return
			}
			n.send(text)
			if draining == nil && strings.Contains(text, daemon.SdNotifyStopping) {
				ticker := time.NewTicker(extendBy / 2)
				defer ticker.Stop()
				draining = ticker.C
			}
		case <-draining:
			n.send(extend)
		}
	}
}

// send leaves the environment as it is: the watchdog needs it too.
func (n *Notifier) send(text string) {
	if _, err := daemon.SdNotify(false, text); err != nil {
		n.log.Warn("cannot tell the service manager", "error", err.Error())
	}
}

var extend = fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", extendBy.Microseconds())

// message is what the manager hears of a transition: one datagram.
func message(t lifecycle.Transition) string {
	var lines []string
	switch {
	case t.Event == lifecycle.ReloadBegan:
		lines = []string{daemon.SdNotifyReloading, fmt.Sprintf("MONOTONIC_USEC=%d", monotonic())}
	case t.Event == lifecycle.ReloadEnded && (t.To == lifecycle.Ready || t.To == lifecycle.Maintenance):
		lines = []string{daemon.SdNotifyReady} // also after a bad one: the old settings hold
	case t.To == lifecycle.Ready || t.To == lifecycle.Maintenance:
		lines = []string{daemon.SdNotifyReady}
	case stopping[t.To] && !stopping[t.From]:
		lines = []string{daemon.SdNotifyStopping, extend}
	}
	return strings.Join(append(lines, status(words(t))), "\n")
}

// stopping are the states from which there is no way back.
var stopping = map[lifecycle.State]bool{
	lifecycle.DrainDelay: true, lifecycle.Draining: true, lifecycle.Hurrying: true, lifecycle.Closing: true,
	lifecycle.Stopped: true, lifecycle.Failed: true,
}

// stateWords is what an operator reads in systemctl status.
var stateWords = map[lifecycle.State]string{
	lifecycle.Booting:     "Starting workers",
	lifecycle.Checking:    "Checking that a program runs",
	lifecycle.Opening:     "Opening sockets",
	lifecycle.Ready:       "Serving",
	lifecycle.Maintenance: "In maintenance: what is new is refused",
	lifecycle.DrainDelay:  "Stopping: callers are turned away, everything is still served",
	lifecycle.Draining:    "Stopping: waiting for running programs",
	lifecycle.Hurrying:    "Stopping: running programs are cancelled",
	lifecycle.Closing:     "Stopping: ending workers",
	lifecycle.Stopped:     "Stopped",
	lifecycle.Failed:      "Failed",
}

func words(t lifecycle.Transition) string {
	text := stateWords[t.To]
	switch {
	case t.Event == lifecycle.ReloadEnded && t.Reason != "":
		text += "; reload failed: " + t.Reason
	case t.Reason != "":
		text += " (" + t.Reason + ")"
	}
	return text
}

// status is one line, whatever the reason holds.
func status(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(clean) > maxStatus {
		clean = strings.ToValidUTF8(clean[:maxStatus], "") + "…"
	}
	return "STATUS=" + clean
}

// monotonic is the clock that MONOTONIC_USEC= means, in microseconds.
func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // cannot fail
	return t.Nano() / 1000
}

// Watchdog pings the manager at a third of its interval for as long as alive says nil before the next ping is due, until
// ctx ends. It returns at once where the manager set no watchdog. What alive does must need everything that the service
// needs to serve: a ping from a goroutine that needs nothing says nothing.
func Watchdog(ctx context.Context, alive func(context.Context) error, log *slog.Logger) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil || interval <= 0 {
		return
	}
	ticker := time.NewTicker(interval / 3)
	defer ticker.Stop()
	for {
		look, cancel := context.WithTimeout(ctx, interval/3)
		err := alive(look)
		cancel()
		if err == nil {
			_, err = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
		}
		if err != nil && ctx.Err() == nil {
			log.Error("no sign of life is given to the service manager", "error", err.Error())
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
