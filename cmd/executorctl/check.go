package main

import (
	"context"
	"fmt"

	"github.com/executord/executord/daemon/admin"
)

// checkCommand is executorctl check.
type checkCommand struct{ operator }

// Run has the service tried, and fails where it does not do its work.
func (c *checkCommand) Run(ctx context.Context, w *world) error {
	ok := true
	err := with(ctx, w, c.operator, func(ctx context.Context, a *admin.Client) (admin.Check, error) {
		found, err := a.Check(ctx)
		ok = found.OK
		return found, err
	}, showCheck)
	if err == nil && !ok {
		return exitError(exitCheck)
	}
	return err
}

func showCheck(w *world, c admin.Check) {
	for _, s := range c.Steps {
		mark, color := "ok", green
		if !s.OK {
			mark, color = "FAILED", red
		}
		w.line("%s %s: %s (%s)", w.paint(color, fmt.Sprintf("%-6s", mark)), s.Name, s.Detail, msec(s.TookMs))
	}
	for _, text := range c.Warnings {
		w.line("%s %s", w.paint(yellow, "warning:"), text)
	}
}
