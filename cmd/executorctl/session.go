package main

import (
	"context"
	"fmt"

	"github.com/executord/executord/daemon/admin"
)

// sessionCommands are executorctl session ….
type sessionCommands struct {
	List sessionList `cmd:"" help:"List the sessions of callers."`
}

type sessionList struct{ operator }

// Run prints the sessions.
func (c *sessionList) Run(ctx context.Context, w *world) error {
	return with(ctx, w, c.operator, func(ctx context.Context, a *admin.Client) (admin.SessionList, error) { return a.Sessions(ctx) }, func(w *world, list admin.SessionList) {
		var rows [][]cell
		for _, x := range list.Sessions {
			rows = append(rows, []cell{
				plain(x.ID), plain(x.Identity), {x.State, colorOf(x.State)}, plain(since(x.Since)), plain(fmt.Sprint(x.Executions)), plain(fmt.Sprint(x.Retained)), plain(size(x.OwedBytes)),
			})
		}
		w.table([]string{"SESSION", "CALLER", "STATE", "AGE", "EXECUTIONS", "RETAINED", "UNREAD"}, rows)
	})
}
