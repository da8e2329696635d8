package main

import (
	"context"
	"fmt"

	"github.com/executord/executord/daemon/admin"
	"github.com/executord/executord/daemon/settings"
)

// settingCommands are executorctl setting ….
type settingCommands struct {
	List settingList `cmd:"" help:"List all settings in force, and where they are from."`
}

type settingList struct {
	operator
	Changed bool `help:"Only those that are not the default, or wait for a restart."`
}

// Run prints the settings.
func (c *settingList) Run(ctx context.Context, w *world) error {
	return with(ctx, w, c.operator, func(ctx context.Context, a *admin.Client) (admin.SettingList, error) {
		list, err := a.Settings(ctx)
		if c.Changed {
			kept := []settings.Setting{}
			for _, s := range list.Settings {
				if s.Source != settings.Default || s.ChangedSinceBoot || s.AfterRestart != nil {
					kept = append(kept, s)
				}
			}
			list.Settings = kept
		}
		return list, err
	}, showSettings)
}

func showSettings(w *world, list admin.SettingList) {
	var rows [][]cell
	for _, s := range list.Settings {
		from, note, color := string(s.Source), "", ""
		if s.File != "" {
			from = fmt.Sprintf("%s:%d", s.File, s.Line)
		}
		switch {
		case s.AfterRestart != nil:
			note, color = "after a restart: "+*s.AfterRestart, yellow
		case s.ChangedSinceBoot:
			note = "changed since boot"
		}
		unit := s.Unit
		if unit == "duration" {
			unit = ""
		}
		applies := "restart"
		if s.Reloadable {
			applies = "reload"
		}
		rows = append(rows, []cell{plain(s.Name), plain(s.Value), plain(unit), plain(from), plain(applies), {note, color}})
	}
	w.table([]string{"SETTING", "VALUE", "UNIT", "SOURCE", "APPLIED BY", "NOTE"}, rows)
}
