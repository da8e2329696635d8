package main

import (
	"context"

	"github.com/executord/executord/daemon/admin"
)

// maintenanceCommands are executorctl maintenance ….
type maintenanceCommands struct {
	Enter maintenanceEnter `cmd:"" help:"Refuse new sessions and executions; what is under way finishes."`
	Leave maintenanceLeave `cmd:"" help:"Take new sessions and executions again."`
	Show  maintenanceShow  `cmd:"" help:"Show whether the service is in maintenance, and why."`
}

type maintenanceEnter struct {
	operator
	Reason     string `required:"" placeholder:"TEXT" help:"Why; callers read it."`
	Persistent bool   `help:"After a restart of the service too."`
}

// Run enters maintenance.
func (c *maintenanceEnter) Run(ctx context.Context, w *world) error {
	return with(ctx, w, c.operator, func(ctx context.Context, a *admin.Client) (admin.Maintenance, error) {
		return a.EnterMaintenance(ctx, admin.EnterMaintenance{Reason: c.Reason, Persistent: c.Persistent})
	}, showMaintenance)
}

type maintenanceLeave struct{ operator }

// Run leaves maintenance.
func (c *maintenanceLeave) Run(ctx context.Context, w *world) error {
	return with(ctx, w, c.operator, func(ctx context.Context, a *admin.Client) (admin.Maintenance, error) { return a.LeaveMaintenance(ctx) }, showMaintenance)
}

type maintenanceShow struct{ operator }

// Run prints whether there is maintenance.
func (c *maintenanceShow) Run(ctx context.Context, w *world) error {
	return with(ctx, w, c.operator, func(ctx context.Context, a *admin.Client) (admin.Maintenance, error) { return a.Maintenance(ctx) }, showMaintenance)
}

func showMaintenance(w *world, m admin.Maintenance) {
	if !m.Active {
		w.line("not in maintenance")
		return
	}
	w.line("in %s: %s", w.paint(yellow, "maintenance"), m.Reason)
	after := "until a restart, or maintenance leave"
	if m.Persistent {
		after = "after a restart too, until maintenance leave"
	}
	began := ""
	if m.Since != nil {
		began = m.Since.Local().Format("2006-01-02 15:04:05")
	}
	w.facts([2]string{"by", m.Who}, [2]string{"since", began}, [2]string{"holds", after})
}
