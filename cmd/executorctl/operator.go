package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/executord/executord/daemon/admin"
	"github.com/executord/executord/ipc/protocol"
)

// defaultAdminSocket is where the service listens for its operator when installed.
const defaultAdminSocket = "/run/executord/admin.sock"

// operator is what all commands over the admin socket have.
type operator struct {
	Address string `placeholder:"ADDRESS" help:"The admin socket: unix:/path. Default: $$EXECUTORCTL_ADDRESS, else unix:/run/executord/admin.sock."`
	JSON    bool   `name:"json" help:"Print JSON, in one line."`
}

func (o operator) address(w *world) string {
	return cmp.Or(o.Address, w.env("EXECUTORCTL_ADDRESS"), "unix:"+defaultAdminSocket)
}

// with asks the service. What it answers to ask is printed as JSON, or for people by show.
func with[T any](ctx context.Context, w *world, o operator, ask func(context.Context, *admin.Client) (T, error), show func(*world, T)) error {
	c, err := admin.NewClient(o.address(w))
	if err != nil {
		return err
	}
	defer c.Close()
	got, err := ask(ctx, c)
	if err != nil {
		return adminHint(o.address(w), err)
	}
	if o.JSON {
		return printJSON(w, got)
	}
	show(w, got)
	return nil
}

func printJSON(w *world, v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		_, err = fmt.Fprintf(w.out, "%s\n", text)
	}
	return err
}

// painted is text in a color. What is in it is not a stranger's.
type painted string

func (w *world) paint(color, text string) painted { return painted(w.out.paint(color, text)) }

// line prints one. Strings among args are made harmless for a terminal, and have no ends of lines.
func (w *world) line(format string, args ...any) {
	for i, a := range args {
		if text, is := a.(string); is {
			args[i] = printable(oneLine(text), w.out.terminal)
		}
	}
	_, _ = fmt.Fprintf(w.out, format+"\n", args...)
}

// facts prints names and their values. A fact without a value is left out.
func (w *world) facts(list ...[2]string) {
	width := 0
	for _, f := range list {
		if f[1] != "" {
			width = max(width, len(f[0]))
		}
	}
	for _, f := range list {
		if f[1] != "" {
			_, _ = fmt.Fprintf(w.out, "%s%s  %s\n", w.out.paint(dim, f[0]), strings.Repeat(" ", width-len(f[0])), printable(oneLine(f[1]), w.out.terminal))
		}
	}
}

// since is the time from a moment to now, for people.
func since(t time.Time) string { return span(time.Since(t)) }

// span is a duration with two digits, or two units.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

// msec is a number of milliseconds for people.
func msec(n float64) string {
	if n < 10 {
		return fmt.Sprintf("%.1fms", n)
	}
	return span(time.Duration(n * float64(time.Millisecond)))
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	case n < 10<<30:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d GiB", n>>30)
}

// colorOf is that of a state or an outcome.
func colorOf(state string) string {
	switch state {
	case admin.OK, "ready", "idle", "running", "retained", "open":
		return green
	case "queued", "starting", "restoring", "leaving", "booting", "checking", "opening", "maintenance", "drain_delay", "draining", "hurrying", "closing", "away":
		return yellow
	}
	if _, is := protocol.Type(state).Info(); is {
		return red
	}
	return ""
}
