package daemon

import (
	"context"
	"log/slog"

	"github.com/executord/executord/daemon/events"
	"github.com/executord/executord/daemon/lifecycle"
	"github.com/executord/executord/daemon/server"
)

// tell has the log and the events say what happened. It is an observer of the machine.
func (d *Daemon) tell(t lifecycle.Transition) {
	level := slog.LevelInfo
	switch t.Event {
	case lifecycle.BootFailed, lifecycle.CheckFailed, lifecycle.ListenerFailed, lifecycle.Cut, lifecycle.EndedBadly:
		level = slog.LevelError
	case lifecycle.ReloadEnded:
		if t.Reason != "" {
			level = slog.LevelError
		}
	case lifecycle.WorkersReady, lifecycle.CheckPassed:
		level = slog.LevelDebug
	}
	attrs := []slog.Attr{slog.String("event", string(t.Event)), slog.String("state", string(t.To))}
	if t.Reason != "" {
		attrs = append(attrs, slog.String("reason", t.Reason))
	}
	if t.Who != "" {
		attrs = append(attrs, slog.String("who", t.Who))
	}
	d.log.LogAttrs(context.Background(), level, "lifecycle", attrs...)
	if t.From != t.To || t.Event == lifecycle.MaintenanceEntered {
		d.entered.Store(&t)
	}
	if kind, is := kindOf(t); is {
		d.ring.Publish(events.Event{Time: t.Time, Kind: kind, Reason: t.Reason, Who: t.Who})
	}
	if !boots(t.To) && t.To != lifecycle.Ready && t.To != lifecycle.Maintenance && !t.To.Final() {
		d.limit.Do(d.bound)
	}
}

// kindOf is the event for those who watch the service; false where the transition is none.
func kindOf(t lifecycle.Transition) (events.Kind, bool) {
	switch t.Event {
	case lifecycle.Opened:
		return events.ServiceReady, true
	case lifecycle.MaintenanceEntered:
		return events.MaintenanceBegan, true
	case lifecycle.MaintenanceLeft:
		return events.MaintenanceEnded, true
	case lifecycle.ReloadEnded:
		if t.Reason != "" {
			return events.ReloadFailed, true
		}
		return events.Reloaded, true
	case lifecycle.Stop, lifecycle.ListenerFailed:
		return events.DrainBegan, t.From == lifecycle.Ready || t.From == lifecycle.Maintenance
	}
	return "", false
}

// refused has the events say whom the policy refused.
func (d *Daemon) refused(no server.Refusal) {
	d.ring.Publish(events.Event{Kind: events.AuthFailed, Identity: no.Peer, Reason: string(no.Reason), Detail: no.Path})
}
