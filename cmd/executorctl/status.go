package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/executord/executord/daemon/admin"
)

// statusCommand is executorctl status.
type statusCommand struct{ operator }

// Run prints what the service is doing.
func (c *statusCommand) Run(ctx context.Context, w *world) error {
	return with(ctx, w, c.operator, func(ctx context.Context, a *admin.Client) (admin.Status, error) { return a.Status(ctx) }, showStatus)
}

func showStatus(w *world, s admin.Status) {
	state := s.State.Name
	w.line("executord %s: %s, pid %d, up %s", s.Version, w.paint(colorOf(state), state), s.PID, msec(s.UptimeMs))
	if s.State.Reason != "" || s.State.Who != "" {
		why := s.State.Reason
		if why != "" {
			why = ": " + why
		}
		w.line("  since %s%s (%s)", s.State.Since.Local().Format("2006-01-02 15:04:05"), why, cmp.Or(s.State.Who, "the service"))
	}
	for _, text := range s.Warnings {
		w.line("%s %s", w.paint(yellow, "warning:"), text)
	}
	var callers []string
	for _, name := range slices.Sorted(maps.Keys(s.Identities)) {
		callers = append(callers, fmt.Sprintf("%s (%d running, %d waiting)", name, s.Identities[name].Running, s.Identities[name].Queued))
	}
	w.facts(
		[2]string{"workers", workerCounts(s.Workers)},
		[2]string{"queue", fmt.Sprintf("%d waiting, %d running, %s each of late", s.Queue.Waiting, s.Queue.Running, msec(s.Queue.ServiceMs))},
		[2]string{"executions", fmt.Sprintf("%d ended%s", s.Totals.Executions, counts(": ", s.Totals.Outcomes))},
		[2]string{"turned away", fmt.Sprintf("%d overloaded, %d waited too long, %d left", s.Totals.Overloaded, s.Totals.QueueTimeouts, s.Totals.Left)},
		[2]string{"limits", strings.TrimPrefix(counts(", ", s.Totals.LimitsReached), ", ")},
		[2]string{"processes", fmt.Sprintf("%d started, %d failed, %d crashed, %d stopped with a program, %d retired", s.Totals.WorkersStarted, s.Totals.WorkersFailed, s.Totals.WorkersCrashed, s.Totals.WorkersStopped, s.Totals.WorkersRetired)},
		[2]string{"sessions", fmt.Sprint(s.Sessions)},
		[2]string{"callers", strings.Join(callers, ", ")},
		[2]string{"isolation", strings.Join(s.Isolation, ", ")},
	)
}

func workerCounts(n admin.WorkerCounts) string {
	list := []string{fmt.Sprintf("%d idle, %d running", n.Idle, n.Running)}
	for _, more := range []struct {
		n    int
		word string
	}{{n.Retained, "retained"}, {n.Restoring, "restoring"}, {n.Starting, "starting"}, {n.Leaving, "leaving"}, {n.Due, "due for replacement"}} {
		if more.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", more.n, more.word))
		}
	}
	return strings.Join(list, ", ")
}

// counts lists what there is of each, most first.
func counts(before string, of map[string]uint64) string {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprintf("%d %s", of[name], name))
	}
	if len(list) == 0 {
		return ""
	}
	return before + strings.Join(list, ", ")
}
