package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/executord/executord/daemon/admin"
	"github.com/executord/executord/daemon/events"
)

// eventCommands are executorctl event ….
type eventCommands struct {
	Watch eventWatch `cmd:"" help:"Print news of the service as they come."`
}

type eventWatch struct {
	operator
	All      bool     `help:"Begin with those that the service still has."`
	After    *uint64  `placeholder:"N" help:"Begin with those after the event of this number, as --json prints it."`
	Kind     []string `placeholder:"KIND" complete:"kind" help:"Only these kinds, as worker_crashed."`
	NoFollow bool     `help:"End where nothing is left to print; with --all."`
}

// Run prints events until it is interrupted or the service ends.
func (c *eventWatch) Run(ctx context.Context, w *world) error {
	a, err := admin.NewClient(c.address(w))
	if err != nil {
		return err
	}
	defer a.Close()
	f := admin.EventFilter{Kept: c.All || c.After != nil, Kinds: c.Kind, Follow: !c.NoFollow}
	if c.After != nil {
		f.After = *c.After
	}
	err = a.Watch(ctx, f, func(e events.Event) error { return c.print(w, e) }, func(m admin.Missed) error {
		if c.JSON {
			return printJSON(w, m)
		}
		_, err = fmt.Fprintf(w.err, "%d events were missed\n", m.Missed)
		return err
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return adminHint(c.address(w), err)
}

func (c *eventWatch) print(w *world, e events.Event) error {
	if c.JSON {
		return printJSON(w, e)
	}
	text := strings.TrimRight(" "+printable(oneLine(eventText(e)), w.out.terminal), " ")
	_, err := fmt.Fprintf(w.out, "%s %s%s\n", w.out.paint(dim, e.Time.Local().Format("15:04:05.000")), w.out.paint(eventColor(e.Kind), string(e.Kind)), text)
	return err
}

func eventColor(k events.Kind) string {
	switch k {
	case events.WorkerCrashed, events.WorkerFailed, events.ReloadFailed, events.AuthFailed, events.OverloadBegan:
		return red
	case events.ExecutionFailed, events.WorkerStopped, events.RetainedLost, events.MaintenanceBegan, events.DrainBegan:
		return yellow
	}
	return green
}

// eventText names what an event says, but for its time and kind.
func eventText(e events.Event) string {
	var list []string
	say := func(name, value string) {
		if value != "" {
			list = append(list, name+value)
		}
	}
	say("", e.Worker)
	if e.PID != 0 {
		say("pid ", fmt.Sprint(e.PID))
	}
	say("", string(e.Type))
	say("execution ", e.Execution)
	say("caller's id ", e.CallerID)
	say("session ", e.Session)
	say("of ", e.Identity)
	say("by ", e.Who)
	if e.TookMs > 0 {
		say("took ", msec(e.TookMs))
	}
	if e.Count > 0 {
		say("requests turned away: ", fmt.Sprint(e.Count))
	}
	say("reason: ", e.Reason)
	say("", e.Detail)
	if e.Omitted > 0 {
		say("events of this kind left out before: ", fmt.Sprint(e.Omitted))
	}
	return strings.Join(list, ", ")
}
